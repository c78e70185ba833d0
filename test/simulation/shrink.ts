import type { Fired } from './faults.ts'
import { run, type Outcome, type RunOptions } from './run.ts'

/** Runs that shrinking may cost. */
const RUNS = 250

/**
 * Leaves out faults as long as the same invariant still breaks: halves first, then one by one.
 * @returns the shortest failing run that was found.
 */
export async function shrink(failing: Outcome, options: RunOptions): Promise<Outcome> {
  let best = failing
  let runs = 0
  const fails = async (fired: readonly Fired[]): Promise<Outcome | null> => {
    if (runs++ >= RUNS) return null
    const outcome = await run({
      ...options,
      faults: new Map(fired.map(({ passage, fault }) => [passage, fault])),
    })
    return outcome.violation?.invariant === failing.violation?.invariant ? outcome : null
  }
  for (let size = Math.ceil(best.fired.length / 2); size >= 1 && runs < RUNS;) {
    let shorter: Outcome | null = null
    for (let from = 0; from < best.fired.length && shorter === null; from += size) {
      shorter = await fails([...best.fired.slice(0, from), ...best.fired.slice(from + size)])
    }
    if (shorter !== null && shorter.fired.length < best.fired.length) best = shorter
    else if (size === 1) break
    else size = Math.ceil(size / 2)
    size = Math.min(size, best.fired.length)
  }
  return best
}
