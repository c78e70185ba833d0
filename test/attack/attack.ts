import { parseArgs } from 'node:util'
import type { Random } from '../../src/core/ports.ts'
import { seededRandom } from '../support/ports.ts'
import { attackAnswers } from './answers.ts'
import { attackDocuments } from './documents.ts'
import { attackFrames } from './frames.ts'
import { attackWebhooks } from './webhooks.ts'

export const DOORS: Readonly<Record<string, (count: number, random: Random) => Promise<string>>> = {
  webhooks: attackWebhooks,
  frames: attackFrames,
  answers: attackAnswers,
  documents: attackDocuments,
}

const USAGE = `npm run attack -- [--door NAME] [--count N] [--seed S]

  --door NAME  one of ${Object.keys(DOORS).join(', ')}; all by default
  --count N    so many attempts at each, 100000 by default
  --seed S     repeats a run; any by default
`

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      door: { type: 'string' },
      count: { type: 'string', default: '100000' },
      seed: { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  const doors = values.door === undefined ? Object.keys(DOORS) : [values.door]
  const count = Number(values.count)
  const seed = Number(values.seed ?? Date.now() % 1_000_000)
  if (
    values.help === true ||
    !Number.isSafeInteger(count) ||
    doors.some((door) => !Object.hasOwn(DOORS, door))
  ) {
    process.stdout.write(USAGE)
    process.exit(values.help === true ? 0 : 2)
  }
  for (const door of doors) {
    const started = performance.now()
    try {
      const told = await DOORS[door]?.(count, seededRandom(seed))
      const seconds = ((performance.now() - started) / 1000).toFixed(1)
      process.stdout.write(`${door}: ${count} attempts in ${seconds} s: ${told}\n`)
    } catch (error) {
      process.stdout.write(`${door}: ${error instanceof Error ? error.stack : String(error)}\n`)
      process.stdout.write(`again: npm run attack -- --door ${door} --count ${count} --seed ${seed}\n`)
      process.exitCode = 1
    }
  }
}
