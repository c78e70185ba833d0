import type { Subscriber } from '../../../core/bus.ts'
import { isBefore } from '../../../core/seq.ts'
import { factFrame, transientFrame, type RelayFrame } from './frame.ts'
import type { Hub } from './hub.ts'

/**
 * The most transient frames that wait until the frames before them are durable. More are dropped: a reader may miss
 * transient frames.
 */
const HELD = 1000

/**
 * Restores the order of the stream. A frame is relayed once it is durable, so that no reader is ahead of the log after
 * a crash. A transient frame waits for the frames that came before it.
 */
export function inOrder(
  hub: Pick<Hub, 'publish' | 'pass' | 'size'>,
): Required<Pick<Subscriber, 'factsAdded' | 'cursorMoved' | 'transient'>> {
  let committed = ''
  let held: { after: string; frame: RelayFrame }[] = []

  const release = (isDue: (after: string) => boolean): void => {
    const waiting = held.findIndex(({ after }) => !isDue(after))
    const due = waiting === -1 ? held : held.slice(0, waiting)
    held = waiting === -1 ? [] : held.slice(waiting)
    for (const { frame } of due) hub.publish(frame)
  }

  return {
    transient(event) {
      if (hub.size === 0) return
      const after = event.after ?? ''
      if (!isBefore(committed, after)) hub.publish(transientFrame(event))
      else if (held.length < HELD) held.push({ after, frame: transientFrame(event) })
    },
    factsAdded(facts) {
      const isRead = hub.size > 0
      for (const fact of facts) {
        const { seq } = fact
        if (seq === null) continue
        if (held.length > 0) release((after) => isBefore(after, seq))
        const frame = isRead ? factFrame(fact) : null
        if (frame === null) hub.pass(fact.pos)
        else hub.publish(frame)
      }
    },
    cursorMoved(cursor) {
      if (isBefore(committed, cursor)) committed = cursor
      if (held.length > 0) release((after) => !isBefore(cursor, after))
    },
  }
}
