import type { AddedCall, Call } from './call.ts'
import type { LaneExtension } from './delivery.ts'
import type { StoredFact } from './fact.ts'
import type { Hint } from './hint.ts'
import type { TransientEvent } from './observer.ts'
import type { Session } from './resource.ts'
import type { HeldFrames, OwnerNote } from './scope.ts'
import type { Batch, Committed } from './store.ts'

/** What the parts hear of one another. Called at once and never awaited; a subscriber must not throw. */
export interface Topics {
  /** Hints are about to be written. `possible`: all but those about sessions of others; `certain`: those about sessions known to be ours. */
  hinted(possible: readonly Hint[], certain: readonly Hint[]): void
  /** A session was read; its reading may not be stored yet. */
  sessionRead(session: Session): void
  /** A reading found that the service does not wait for these calls any more. */
  actionsGone(callIds: readonly string[], why: 'resolved' | 'deleted'): void
  /** An event of the stream came that is not stored. */
  transient(event: TransientEvent): void
  /** The first look at the service is through, or failed and will be tried again. */
  looked(done: boolean): void
  /** A look at the list of sessions is through (null), or failed and will be tried again. */
  swept(problem: string | null): void

  // What follows is durable.

  /** `held`: all frames that are held now; absent: their number is as before. */
  ownersNoted(notes: readonly OwnerNote[], held: HeldFrames | undefined): void
  /** `written`: the calls of the commit that are not part of a reading, new or not. */
  callsAdded(added: readonly AddedCall[], written: readonly Call[]): void
  hintsAdded(): void
  factsAdded(facts: readonly StoredFact[]): void
  /** Channels reported facts that were known. */
  sighted(sightings: Committed['sightings']): void
  framesUnattributed(count: number): void
  /** Everything of the stream up to here is durable. */
  cursorMoved(cursor: string): void
  lanesExtended(lanes: readonly LaneExtension[]): void
}

/** Names only the topics that it wants. */
export type Subscriber = Partial<Topics>

/**
 * The one way from what was committed to who works on it. A frame is committed: delivery, tools, reconciler, summaries, relay
 * and metrics hear of what is theirs, and the intake knows none of them. A lost wake costs time, never a fact: each queue also
 * knows when its next item is due.
 */
export class Bus {
  readonly #subscribers: Subscriber[] = []

  subscribe(...subscribers: readonly Subscriber[]): void {
    this.#subscribers.push(...subscribers)
  }

  /** `call`: names a topic of the subscriber. */
  report(call: (to: Subscriber) => void): void {
    for (const one of this.#subscribers) call(one)
  }

  /** An answer unparks an agent, a callback only informs: what leads to answers goes first. */
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
