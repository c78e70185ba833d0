import type { AddedCall, Call } from './call.ts'
import type { LaneExtension } from './delivery.ts'
import type { StoredFact } from './fact.ts'
import type { Hint } from './hint.ts'
import type { TransientEvent } from './observer.ts'
import type { Session } from './resource.ts'
import type { HeldFrames, OwnerNote } from './scope.ts'
import type { Batch, Committed } from './store.ts'

/**
 * What the parts of the sidecar report to one another. `Bus` calls the subscribers synchronously and awaits none of
 * them; a subscriber must not throw.
 */
export interface Topics {
  /**
   * Hints came, and are not stored yet. `possible`: all but those of foreign sessions; `certain`: those of sessions
   * that are known to be ours.
   */
  hinted(possible: readonly Hint[], certain: readonly Hint[]): void
  /** A session was read; the result may not be stored yet. */
  sessionRead(session: Session): void
  /** A read found that the service no longer waits for these calls. */
  actionsGone(callIds: readonly string[], why: 'resolved' | 'deleted'): void
  /** The stream sent a transient event, which is never stored. */
  transient(event: TransientEvent): void
  /** The first read of all sessions is complete, or failed and will be tried again. */
  looked(done: boolean): void
  /** A read of all sessions is complete (null), the first one too, or failed and will be tried again. */
  swept(problem: string | null): void

  // The following reports are about durable changes.

  /** `held`: all frames that are held now; absent: their number has not changed. */
  ownersNoted(notes: readonly OwnerNote[], held: HeldFrames | undefined): void
  /** `written`: the calls that the batch had in `newCalls`, those included that were stored before. */
  callsAdded(added: readonly AddedCall[], written: readonly Call[]): void
  hintsAdded(): void
  factsAdded(facts: readonly StoredFact[]): void
  /** Channels reported facts that were stored already. */
  sighted(sightings: Committed['sightings']): void
  framesUnattributed(count: number): void
  /** All events of the stream up to this cursor are durable. */
  cursorMoved(cursor: string): void
  lanesExtended(lanes: readonly LaneExtension[]): void
}

/** A subscriber implements only the topics that it needs. */
export type Subscriber = Partial<Topics>

/**
 * When a frame is committed, the bus reports it to delivery, tools, reconciler, summaries, relay and metrics, so the
 * intake imports none of them. A report that is lost costs time, never a fact: each queue also knows when its next
 * item is due.
 */
export class Bus {
  readonly #subscribers: Subscriber[] = []

  subscribe(...subscribers: readonly Subscriber[]): void {
    this.#subscribers.push(...subscribers)
  }

  /** `call` gets a subscriber, and calls one of its topics. */
  report(call: (to: Subscriber) => void): void {
    for (const one of this.#subscribers) call(one)
  }

  /**
   * Function calls are reported before facts: an agent waits for the answer to a call, and a callback only informs.
   */
  publish(committed: Committed, { owners, readings, cursor, newCalls: written = [] }: Batch): void {
    const { held, newCalls, hinted, facts, sightings, unattributed, stale, lanes } = committed
    if (owners !== undefined || held !== undefined) this.report((to) => to.ownersNoted?.(owners ?? [], held))
    if (newCalls.length > 0) this.report((to) => to.callsAdded?.(newCalls, written))
    if (hinted) this.report((to) => to.hintsAdded?.())
    if (facts.length > 0) this.report((to) => to.factsAdded?.(facts))
    if (cursor !== undefined) this.report((to) => to.cursorMoved?.(cursor))
    if (sightings.length > 0) this.report((to) => to.sighted?.(sightings))
    if (unattributed !== undefined) this.report((to) => to.framesUnattributed?.(unattributed))
    for (const { sessionId, session } of readings ?? [])
      if (session !== null && !stale.includes(sessionId)) this.report((to) => to.sessionRead?.(session))
    if (lanes.length > 0) this.report((to) => to.lanesExtended?.(lanes))
  }
}
