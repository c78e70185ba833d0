import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse, stringify } from 'yaml'
import type { Random } from '../../src/std/ports.ts'
import { loadScenario } from '../../src/emulator/index.ts'
import { scriptFor } from '../../src/emulator/scenario/script.ts'
import { inFolder } from './folder.ts'
import { mutateText, mutateValue, pick } from './mutate.ts'
import { Tally } from './tally.ts'

const SCENARIOS: readonly unknown[] = ['tour', 'example'].map((name) =>
  parse(readFileSync(resolve(import.meta.dirname, `../../config/scenarios/${name}.yaml`), 'utf8')),
)

/** Scenario files of the emulator: each makes scripts, or is refused with the file, the line and a sentence. */
export function attackScenarios(count: number, random: Random): Promise<Tally> {
  return inFolder(async (folder) => {
    const file = join(folder, 'scenario.yaml')
    const tally = new Tally()
    for (let index = 0; index < count; index++) {
      const part = partOf(pick(random, SCENARIOS), random)
      const text =
        random.next() < 0.5 ? mutateText(stringify(part), random) : stringify(mutateValue(part, random, 0.5))
      writeFileSync(file, text)
      const scenario = read(file, text)
      tally.note(scenario === null ? 'refused' : 'taken')
      if (scenario === null) continue
      for (const message of ['hello', 'call lookup {"a":1}', mutateText('say hi\nfail now', random)])
        scriptFor(scenario, message, '')
    }
    return tally
  })
}

function read(file: string, text: string): ReturnType<typeof loadScenario> | null {
  try {
    return loadScenario(file)
  } catch (error) {
    const message = error instanceof Error ? error.message : ''
    const spoken = message.split('\n').every((line) => line.startsWith(`${file}:`))
    if (!spoken) throw new Error(`${message} of\n${text}`, { cause: error })
    return null
  }
}

/** A scenario with one entry of each of its lists: a short one is read so much faster. */
function partOf(scenario: unknown, random: Random): unknown {
  const entries = Object.entries(Object(scenario) as object).map(([key, value]: [string, unknown]) => [
    key,
    Array.isArray(value) && value.length > 0 ? [pick<unknown>(random, value)] : value,
  ])
  return Object.fromEntries(entries)
}
