import { createThrottledLog } from '../../std/throttled-log.ts'
import { attemptNumber, type Attempt, type PendingDelivery } from '../../core/delivery.ts'
import type { StoredFact } from '../../core/fact.ts'
import type { CallbackOutcome, Observer } from '../../core/observer.ts'
import type { Clock, Log } from '../../std/ports.ts'
import { traceIdOf, traceOf } from '../../core/trace.ts'
import type { AckBatcher } from './ack-batcher.ts'
import type { ActiveLane } from './lane.ts'

/** An attempt that has ended. */
export interface Ended {
  lane: ActiveLane
  batch: readonly PendingDelivery[]
  attempt: Attempt
}

/** When a failed batch is tried again. */
interface Again {
  /** Steady milliseconds. */
  dueAt: number
  /** From now, milliseconds. */
  wait: number
}

/** Records how the attempts of one handler ended: in the store, to observers, in the log. */
export class Recorder {
  readonly #handler: string
  readonly #acks: AckBatcher
  readonly #observer: Observer
  readonly #log: Log
  readonly #warnRetry

  constructor(handler: string, ports: { acks: AckBatcher; observer: Observer; clock: Clock; log: Log }) {
    this.#handler = handler
    this.#acks = ports.acks
    this.#observer = ports.observer
    this.#log = ports.log
    this.#warnRetry = createThrottledLog<Ended & Again>(ports.clock, (failed, { batch, attempt, wait }) => {
      const [first] = batch
      if (first === undefined) return
      const { status, error } = attempt
      ports.log.warn(
        {
          ...this.#names(first.fact),
          attempt: attemptNumber(first),
          status,
          error,
          wait: Math.round(wait),
          failed,
          // An app that has another secret than the configuration answers 401 to every callback.
          ...(status === 401 && { fix: 'give the app the secret of the configuration' }),
        },
        'deliver: an attempt failed, and is repeated',
      )
    })
  }

  delivered(ended: Ended): void {
    this.#acknowledge(ended, 'delivered', null)
  }

  dead(ended: Ended): void {
    this.#acknowledge(ended, 'dead', null)
    const { error, status } = ended.attempt
    for (const { fact } of ended.batch)
      this.#log.warn({ ...this.#names(fact), error, status }, 'deliver: dead letter')
  }

  /** The wait is stored with the attempt. */
  retry(ended: Ended, again: Again): void {
    this.#acknowledge(ended, 'retry', again.wait)
    this.#warnRetry({ ...ended, ...again }, ended.batch.length)
  }

  report({ batch, attempt }: Ended, outcome: CallbackOutcome, wait: number | null = null): void {
    const handler = this.#handler
    for (const delivery of batch) {
      const number = attemptNumber(delivery)
      this.#observer.callback({ handler, fact: delivery.fact, outcome, attempt, number, wait })
    }
  }

  #acknowledge(ended: Ended, result: 'delivered' | 'retry' | 'dead', after: number | null): void {
    const { lane: owner, batch, attempt } = ended
    for (const { fact, attempts } of batch) {
      const ack = { lane: owner.lane, pos: fact.pos, result, attempts: attempts + 1, attempt, after }
      owner.unacknowledged++
      this.#acks.add(ack, owner)
    }
    this.report(ended, result, after)
  }

  #names(fact: StoredFact) {
    const { id, type, sessionId } = fact
    return { handler: this.#handler, fact: id, type, sessionId, trace_id: traceIdOf(traceOf(fact, null)) }
  }
}
