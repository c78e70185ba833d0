import { setTimeout as pause } from 'node:timers/promises'
import { DEAD } from './books.ts'
import type { Fault } from '../checker/history.ts'
import { delivered, inOrder, notAhead, sameIds, signed, whole } from './oracle/callbacks.ts'
import { closed, rightAnswers, runs, sameAnswers } from './oracle/calls.ts'
import { gather, type Evidence, type Round } from './oracle/evidence.ts'
import { agreed, busy, once } from './oracle/knowledge.ts'
import { logged } from './oracle/log.ts'
import { gauges } from './oracle/metrics.ts'
import { resumeAll } from './weather.ts'

/** Between two looks, milliseconds. */
const LOOK = 250
/** People wait so long for a turn to end by itself, milliseconds. */
const GIVEN_UP = 15_000

/** What is final once it was wrong: waiting does not help. */
const LASTING = [sameIds, signed, inOrder, notAhead, once, sameAnswers, rightAnswers, runs, logged]
/** The conditions of the idle state. */
const AT_REST = [busy, delivered, closed, agreed, gauges]
/** What comes to be so once the dead letters were brought back. */
const IN_THE_END = [...AT_REST, whole]

export interface Verdict {
  /** At the last look. */
  evidence: Evidence
  /** What is wrong: what waiting cannot change, and what it did not. */
  faults: Fault[]
}

/**
 * Waits until everything rests and agrees, `patience` milliseconds at the most without anything being delivered. Dead letters are looked at and then
 * brought back, so that in the end everything was delivered.
 */
export async function judge(world: Round, patience: number): Promise<Verdict> {
  let limit = performance.now() + patience
  let least = Infinity
  let givenUp = performance.now() + GIVEN_UP
  let retried = false
  for (;;) {
    // What waits for a person gets one.
    await world.load.resolveAll(1)
    await resumeAll(world.sidecar)
    if (performance.now() > givenUp) {
      givenUp += GIVEN_UP
      await world.load.cancelAll().catch(() => undefined)
    }
    const left = await world.pending()
    if (left < least) limit = performance.now() + patience
    least = Math.min(least, left)
    if (left > 0 && performance.now() < limit) {
      await pause(LOOK)
      continue
    }
    const evidence = await gather(world)
    const pending = first(retried ? IN_THE_END : AT_REST, evidence)
    if (pending.length === 0 && !retried) {
      retried = true
      const dead = evidence.deliveries.filter(({ status }) => status === DEAD)
      inOrder(evidence)
      world.tally.add('dead letters', dead.length)
      if (dead.length > 0) await world.sidecar.ask('POST', '/api/deliveries/retry', {})
      least = Infinity
      continue
    }
    const over = performance.now() > limit
    if (pending.length === 0 || over) {
      const lasting = LASTING.flatMap((find) => find(evidence))
      count(evidence)
      return { evidence, faults: [...world.violations, ...lasting, ...pending] }
    }
    await pause(LOOK)
  }
}

/** The faults of the first that finds any: the others cost more and say the same. */
function first(finders: readonly ((evidence: Evidence) => Fault[])[], evidence: Evidence): Fault[] {
  for (const find of finders) {
    const faults = find(evidence)
    if (faults.length > 0) return faults
  }
  return []
}

function count({ world, facts, deliveries, ledger, calls }: Evidence): void {
  const { tally, app } = world
  tally.add('facts', facts.length)
  tally.add('deliveries', deliveries.length)
  tally.add('callbacks', app.callbacks.length)
  const ids = app.callbacks.map(({ name, id }) => `${name}/${id}`)
  tally.add('repeated attempts', ids.length - new Set(ids).size)
  tally.add('tool runs', app.runs.length)
  tally.add('calls', calls.length)
  tally.add('calls answered', calls.filter(({ state }) => state === 'answered').length)
  tally.add('turns', ledger.turns.length)
  tally.add('service restarts', world.service.restarts)
}
