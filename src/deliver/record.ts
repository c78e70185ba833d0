import { backoff } from '../core/backoff.ts'
import { createComplaint } from '../core/complaint.ts'
import type { Attempt, PendingDelivery } from '../core/delivery.ts'
import type { StoredFact } from '../core/fact.ts'
import type { HandlerSpec } from '../core/handler.ts'
import type { CallbackOutcome, Observer } from '../core/observer.ts'
import type { Clock, Log, Random } from '../core/ports.ts'
import { traceIdOf } from '../core/trace.ts'
import type { ActiveLane } from './lane.ts'
import type { Settler } from './settler.ts'
import { traceOf } from './trace.ts'

interface Failure {
  /** Of the batch. */
  first: PendingDelivery
  attempt: Attempt
  /** Until the next try, milliseconds. */
  wait: number
}

/** Writes what became of attempts, by the handler's retry policy. */
export interface Recorder {
  settle(
    active: ActiveLane,
    batch: readonly PendingDelivery[],
    result: 'delivered' | 'retry' | 'dead',
    attempt: Attempt,
    dueAt?: number,
  ): void
  /** Dead letters: they stay, and the lane goes on. */
  bury(active: ActiveLane, batch: readonly PendingDelivery[], attempt: Attempt): void
  /** @returns when the lane is due again, steady milliseconds; undefined when nothing of the batch is left to try. */
  retry(
    active: ActiveLane,
    batch: readonly PendingDelivery[],
    attempt: Attempt,
    floor: number,
  ): number | undefined
  report(batch: readonly PendingDelivery[], outcome: CallbackOutcome, attempt: Attempt): void
}

export function createRecorder(options: {
  spec: HandlerSpec
  settler: Settler
  observer: Observer
  clock: Clock
  random: Random
  log: Log
}): Recorder {
  const { spec, settler, observer, clock, random, log } = options

  const namesOf = (fact: StoredFact) => ({
    handler: spec.name,
    fact: fact.id,
    type: fact.type,
    sessionId: fact.sessionId,
    trace_id: traceIdOf(traceOf(fact, null)),
  })

  /** For whoever is woken: the first failure at once, of a long row a line now and then. */
  const complain = createComplaint<Failure>(clock, (failed, { first, attempt: { status, error }, wait }) =>
    log.warn(
      { ...namesOf(first.fact), attempt: numberOf(first), status, error, wait, failed },
      'deliver: failed, will try again',
    ),
  )

  const recorder: Recorder = {
    settle(active, batch, result, attempt, dueAt) {
      for (const { fact, attempts } of batch) {
        active.settled = settler.add({
          lane: active.lane,
          pos: fact.pos,
          result,
          attempts: attempts + 1,
          attempt,
          dueAt: dueAt === undefined ? null : Math.ceil(dueAt),
        })
      }
      recorder.report(batch, result, attempt)
    },
    bury(active, batch, attempt) {
      recorder.settle(active, batch, 'dead', attempt)
      for (const { fact } of batch) {
        const { error, status } = attempt
        log.warn({ ...namesOf(fact), error, status }, 'deliver: dead letter')
      }
    },
    retry(active, batch, attempt, floor) {
      const spent = batch.filter(({ attempts }) => attempts + 1 >= spec.retry.attempts)
      const left = batch.filter(({ attempts }) => attempts + 1 < spec.retry.attempts)
      if (spent.length > 0) recorder.bury(active, spent, attempt)
      const [first] = left
      if (first === undefined) {
        active.drop(batch.length)
        return undefined
      }
      const most = Math.max(...left.map(({ attempts }) => attempts)) + 1
      const now = clock.steady()
      const dueAt = now + backoff(spec.retry, most, random, floor)
      recorder.settle(active, left, 'retry', attempt, dueAt)
      complain({ first, attempt, wait: Math.round(dueAt - now) }, left.length)
      return dueAt
    },
    report(batch, outcome, attempt) {
      for (const delivery of batch) {
        const number = numberOf(delivery)
        observer.callback({ handler: spec.name, fact: delivery.fact, outcome, attempt, number })
      }
    },
  }
  return recorder
}

/** `delivery.attempt` of the next attempt, from 1. */
export function numberOf({ attempts, cut }: PendingDelivery): number {
  return attempts + cut + 1
}
