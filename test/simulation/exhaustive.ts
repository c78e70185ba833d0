import type { Fault, Fired } from './faults.ts'
import { FIXED } from './fixed.ts'
import { faultsText } from './replay.ts'
import { run, type Outcome } from './run.ts'
import type { Scenario } from './scenario.ts'

/** Every fixed scenario has a seed of its own, for what else is left to chance. */
export const SEED = 7

interface Place {
  passage: number
}

/** Where a run of `scenario` may crash: the passages of its faultless run, up to the end of its news. */
async function placesOf(scenario: Scenario): Promise<Place[]> {
  const places: Place[] = []
  await run({
    seed: SEED,
    mode: 'liveness',
    scenario,
    plan: {
      decide(passage, _site, _when, possible) {
        if (possible.includes('crash')) places.push({ passage })
        return null
      },
    },
  })
  return places
}

/** Plays `scenario` with these crashes. */
export function crashAt(scenario: Scenario, passages: readonly number[]): Promise<Outcome> {
  const faults = new Map(passages.map((passage): [number, Fault] => [passage, 'crash']))
  return run({ seed: SEED, mode: 'liveness', scenario, faults })
}

/**
 * Plays each fixed scenario with a crash at each of its places. `part`: of one scenario alone.
 * @returns false when an invariant broke.
 */
export async function exhaust(part: string | undefined): Promise<boolean> {
  let held = true
  for (const [name, scenario] of Object.entries(FIXED)) {
    if (part !== undefined && !name.includes(part)) continue
    const places = await placesOf(scenario)
    let broken: { fired: Fired[]; violation: NonNullable<Outcome['violation']> } | null = null
    for (const { passage } of places) {
      const { violation, fired } = await crashAt(scenario, [passage])
      if (violation === null) continue
      broken = { fired, violation }
      break
    }
    if (broken === null) console.log(`${name}: ${places.length} crashes, all held`)
    else {
      held = false
      console.log(`${name}: ${broken.violation.invariant}: ${broken.violation.message}`)
      console.log(`  ${broken.fired.map(({ when, site }) => `crash ${when} ${site}`).join('; ')}`)
      console.log(`  npm run simulate -- --scenario '${name}' --faults '${faultsText(broken.fired)}'`)
    }
  }
  return held
}
