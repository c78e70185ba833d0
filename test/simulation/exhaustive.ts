import { Chance } from './chance.ts'
import type { Fault } from './faults.ts'
import { FIXED } from './fixed.ts'
import { faultsText } from './replay.ts'
import { run, type Outcome } from './run.ts'
import type { Scenario } from './scenario.ts'

/** Every fixed scenario has a seed of its own, for what else is left to chance. */
export const SEED = 7

/** Where a run of `scenario` may crash: the passages of its faultless run, up to the end of its news. */
async function placesOf(scenario: Scenario): Promise<number[]> {
  const places: number[] = []
  await run({
    seed: SEED,
    mode: 'liveness',
    scenario,
    plan: {
      decide(passage, _site, _when, possible) {
        if (possible.includes('crash')) places.push(passage)
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

/** Every single crash, and after them `pairs` ordered pairs by chance. */
function* crashesOf(places: readonly number[], pairs: number): Generator<number[]> {
  for (const place of places) yield [place]
  const chance = new Chance(SEED, 'pairs')
  for (let made = 0; made < pairs; made++)
    yield [chance.pick(places), chance.pick(places)].sort((a, b) => a - b)
}

/**
 * Plays each fixed scenario with a crash at each of its places, and with `pairs` pairs of crashes. `part`: of the scenarios
 * with this in their names alone.
 * @returns false when an invariant broke.
 */
export async function exhaust(part: string | undefined, pairs: number): Promise<boolean> {
  let held = true
  for (const [name, scenario] of Object.entries(FIXED)) {
    if (part !== undefined && !name.includes(part)) continue
    let played = 0
    for (const passages of crashesOf(await placesOf(scenario), pairs)) {
      const { violation, fired } = await crashAt(scenario, passages)
      played++
      if (violation === null) continue
      held = false
      console.log(`${name}: ${violation.invariant}: ${violation.message}`)
      console.log(`  ${fired.map(({ when, site }) => `crash ${when} ${site}`).join('; ')}`)
      console.log(`  npm run simulate -- --scenario '${name}' --faults '${faultsText(fired)}'`)
      break
    }
    console.log(`${name}: ${played} times crashed${held ? ', all held' : ''}`)
  }
  return held
}
