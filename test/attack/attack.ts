import { parseArgs } from 'node:util'
import { seededRandom } from '../support/ports.ts'
import { DOORS } from './doors.ts'

const USAGE = `npm run attack -- [--door NAME] [--count N] [--seed S]

  --door NAME  one of ${Object.keys(DOORS).join(', ')}; all by default
  --count N    so many inputs at each; by default what fits into some minutes, at most a million
  --seed S     repeats a run; any by default
`

const { values } = parseArgs({
  options: {
    door: { type: 'string' },
    count: { type: 'string' },
    seed: { type: 'string' },
    help: { type: 'boolean' },
  },
})
const doors = Object.entries(DOORS).filter(([name]) => values.door === undefined || name === values.door)
const seed = Number(values.seed ?? Date.now() % 1_000_000)
const given = values.count === undefined ? null : Number(values.count)
if (
  values.help === true ||
  doors.length === 0 ||
  !Number.isSafeInteger(seed) ||
  (given !== null && !Number.isSafeInteger(given))
) {
  process.stdout.write(USAGE)
  process.exit(values.help === true ? 0 : 2)
}

process.stdout.write(`seed ${seed}\n${row('door', 'inputs', 'a second', 'outcomes')}`)
for (const [name, { attack, usual }] of doors) {
  const count = given ?? usual
  const started = performance.now()
  try {
    const tally = await attack(count, seededRandom(seed))
    const pace = count / ((performance.now() - started) / 1000)
    process.stdout.write(row(name, String(count), pace.toFixed(0), String(tally)))
  } catch (error) {
    process.stdout.write(row(name, String(count), '', 'HARM'))
    console.error(error)
    process.stdout.write(`again: npm run attack -- --door ${name} --count ${count} --seed ${seed}\n`)
    process.exitCode = 1
  }
}

function row(door: string, inputs: string, pace: string, outcomes: string): string {
  return `${door.padEnd(14)} ${inputs.padStart(8)} ${pace.padStart(9)}  ${outcomes}\n`
}
