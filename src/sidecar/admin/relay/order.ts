import type { Subscriber } from '../../../core/bus.ts'
import type { TransientEvent } from '../../../core/observer.ts'
import { isBefore } from '../../../core/seq.ts'
import { BoundedMap } from '../../../std/bounded-map.ts'
import { factFrame, transientFrame, type RelayFrame } from './frame.ts'
import type { Hub } from './hub.ts'

/**
 * The most transient frames that wait until the frames before them are durable. More are dropped: a reader may miss
 * transient frames.
 */
const HELD = 1000
/** Sessions whose last frame is known. */
const SESSIONS = 1000

export interface Order extends Required<Pick<Subscriber, 'factsAdded' | 'cursorMoved' | 'transient'>> {
  /** A transient event of another process. It is left out if a newer frame of its session has been relayed meanwhile. */
  shared(event: TransientEvent): void
  /** Whether transient frames wait. */
  readonly waits: boolean
  /** The frames before those that wait are published. */
  release(): void
}

/**
 * Restores the order of the stream. A frame is relayed once it is durable, so that no reader is ahead of the log after
 * a crash. A transient frame waits for the frames that came before it.
 */
export function inOrder(hub: Pick<Hub, 'publish' | 'pass' | 'size'>): Order {
  let committed = ''
  let held: { after: string; frame: RelayFrame }[] = []
  /** The seq of the last frame of a session. */
  const newest = new BoundedMap<string | null, string>(SESSIONS)

  const release = (isDue: (after: string) => boolean): void => {
    const waiting = held.findIndex(({ after }) => !isDue(after))
    const due = waiting === -1 ? held : held.slice(0, waiting)
    held = waiting === -1 ? [] : held.slice(waiting)
    for (const { frame } of due) hub.publish(frame)
  }

  const transient = (event: TransientEvent): void => {
    if (hub.size === 0) return
    const after = event.after ?? ''
    if (held.length === 0 && !isBefore(committed, after)) hub.publish(transientFrame(event))
    else if (held.length < HELD) held.push({ after, frame: transientFrame(event) })
  }

  return {
    transient,
    shared(event) {
      const last = newest.get(event.sessionId)
      if (last === undefined || !isBefore(event.after ?? '', last)) transient(event)
    },
    factsAdded(facts) {
      const isRead = hub.size > 0
      for (const fact of facts) {
        const { seq } = fact
        if (seq === null) continue
        if (held.length > 0) release((after) => isBefore(after, seq))
        const frame = isRead ? factFrame(fact) : null
        if (frame === null) hub.pass(fact.pos)
        else {
          hub.publish(frame)
          newest.set(fact.sessionId, seq)
        }
        // All frames before one that is stored are stored, too.
        if (isBefore(committed, seq)) committed = seq
        if (held.length > 0) release((after) => !isBefore(seq, after))
      }
    },
    cursorMoved(cursor) {
      if (isBefore(committed, cursor)) committed = cursor
      if (held.length > 0) release((after) => !isBefore(cursor, after))
    },
    get waits() {
      return held.length > 0
    },
    release: () => release(() => true),
  }
}
