import { Chance } from './chance.ts'
import { only, type Plan } from './faults.ts'
import type { Story, Answered } from './exhaustive-thread.ts'
import { FIXED } from './fixed.ts'
import { faultsText } from './replay.ts'
import { run, type Outcome } from './run.ts'
import type { Scenario } from './scenario.ts'
import { onThreads } from './threads.ts'

/** Every fixed scenario has a seed of its own, for what else is left to chance. */
export const SEED = 7

interface Places {
  /** The calls through ports of a faultless run at which it may crash, up to its last event. */
  passages: number[]
  /** Their places, each once: `site when`. */
  names: string[]
}

async function placesOf(scenario: Scenario): Promise<Places> {
  const passages: number[] = []
  const names = new Set<string>()
  const plan: Plan = {
    decide(passage, site, when, possible) {
      if (!possible.includes('crash')) return null
      passages.push(passage)
      names.add(`${site} ${when}`)
      return null
    },
  }
  await run({ seed: SEED, mode: 'liveness', scenario, plan })
  return { passages, names: [...names] }
}

/** A crash at the first passage of one place, and one at the first passage of another after it. */
function crashTwice(first: string, second: string): Plan {
  const left = [first, second]
  return {
    decide(_passage, site, when, possible) {
      if (`${site} ${when}` !== left[0] || !possible.includes('crash')) return null
      left.shift()
      return 'crash'
    },
  }
}

/** Every single crash, or each so many one; then pairs: `pairs` of them by chance, or all. */
function* plansOf({ passages, names }: Places, pairs: number, every: number): Generator<Plan> {
  for (const [index, passage] of passages.entries())
    if (index % every === 0) yield only(new Map([[passage, 'crash']]))
  const chance = new Chance(SEED, 'pairs')
  if (pairs >= names.length ** 2)
    for (const first of names) for (const second of names) yield crashTwice(first, second)
  else for (let made = 0; made < pairs; made++) yield crashTwice(chance.pick(names), chance.pick(names))
}

export interface Exhausted {
  /** Runs with one crash. */
  singles: number
  /** Pairs of places that there are. */
  pairs: number
  played: number
  broken: Outcome | null
}

/** Plays `scenario` with a crash at each of its places, or at each so many one, and with `pairs` pairs of crashes, until an invariant breaks. */
export async function exhaustOne(scenario: Scenario, pairs: number, every = 1): Promise<Exhausted> {
  const places = await placesOf(scenario)
  const sizes = { singles: places.passages.length, pairs: places.names.length ** 2 }
  let played = 0
  for (const plan of plansOf(places, pairs, every)) {
    const outcome = await run({ seed: SEED, mode: 'liveness', scenario, plan })
    played++
    if (outcome.violation !== null) return { ...sizes, played, broken: outcome }
  }
  return { ...sizes, played, broken: null }
}

/** What broke, and the line that plays it again. */
export function brokenText(name: string, { violation, fired }: Outcome): string {
  return [
    `${name}: ${violation?.invariant}: ${violation?.message}`,
    `  ${fired.map(({ when, site }) => `crash ${when} ${site}`).join('; ')}`,
    `  npm run simulate -- --scenario '${name}' --faults '${faultsText(fired)}'`,
  ].join('\n')
}

/**
 * Does so with each fixed scenario, on `threads` cores. `part`: with those alone that have this in their names.
 * @returns false when an invariant broke.
 */
export async function exhaust(part: string | undefined, pairs: number, threads: number): Promise<boolean> {
  const total = { singles: 0, pairs: 0, played: 0, broken: 0 }
  const waiting = Object.keys(FIXED).filter((name) => part === undefined || name.includes(part))
  await onThreads<Story>({
    file: 'exhaustive-thread.ts',
    threads,
    take() {
      const name = waiting.shift()
      return name === undefined ? null : { name, pairs }
    },
    onAnswer(answer, { name }) {
      const { broken, ...sizes } = answer as Answered
      total.singles += sizes.singles
      total.pairs += sizes.pairs
      total.played += sizes.played
      if (broken !== null) total.broken++
      console.log(
        broken ??
          `${name}: ${sizes.singles} single crashes and ${sizes.played - sizes.singles} of ${sizes.pairs} pairs held`,
      )
    },
  })
  const pairsPlayed = Math.max(0, total.played - total.singles)
  console.log(
    `${total.singles} single crashes, ${pairsPlayed} of ${total.pairs} pairs: ${total.broken} broke`,
  )
  return total.broken === 0
}
