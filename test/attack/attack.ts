import { parseArgs } from 'node:util'
import { readCommand, wholeNumber } from '../support/command.ts'
import { seededRandom } from '../support/ports.ts'
import { DOORS } from './doors.ts'

const USAGE = `npm run attack -- [--door NAME] [--count N] [--seed S]

  --door NAME  one entry point, all by default: ${Object.keys(DOORS).join(', ')}
  --count N    number of inputs at each entry point; by default up to a million, so that all entry points
               together take some minutes. For costs: the size of each input in KiB
  --seed S     repeats a run; random by default
`

const { doors, seed, given } = readCommand(USAGE, (args) => {
  const { values } = parseArgs({
    args: [...args],
    options: { door: { type: 'string' }, count: { type: 'string' }, seed: { type: 'string' } },
  })
  const { door, count, seed = String(Date.now() % 1_000_000) } = values
  const doors = Object.entries(DOORS).filter(([name]) => door === undefined || name === door)
  if (doors.length === 0) throw new TypeError(`there is no entry point "${door}"`)
  return {
    doors,
    seed: wholeNumber('seed', seed, 0),
    given: count === undefined ? null : wholeNumber('count', count),
  }
})

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
