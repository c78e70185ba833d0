import type { StoredFact } from '../../../core/fact.ts'
import type { Observer } from '../../../core/observer.ts'
import { isBefore } from '../../../core/seq.ts'
import { factFrame, transientFrame, type RelayFrame } from './frame.ts'

/** Transient frames that wait for the disk; more are dropped, as they may be. */
const HELD = 1000

/**
 * Puts what the stream brought back in its order. A frame is relayed once it is durable, so that no reader is ahead of
 * us after a crash; a transient one waits for the frames that came before it.
 */
export function inOrder(publish: (frame: RelayFrame) => void): Partial<Observer> {
  let accepted = ''
  let committed = ''
  let held: { after: string; frame: RelayFrame }[] = []

  const release = (isDue: (after: string) => boolean): void => {
    if (held.length === 0) return
    const waiting = held.findIndex(({ after }) => !isDue(after))
    const due = waiting === -1 ? held : held.slice(0, waiting)
    held = waiting === -1 ? [] : held.slice(waiting)
    for (const { frame } of due) publish(frame)
  }

  return {
    frame({ seq }) {
      if (seq !== null && isBefore(accepted, seq)) accepted = seq
    },
    transient(event) {
      if (!isBefore(committed, accepted)) publish(transientFrame(event))
      else if (held.length < HELD) held.push({ after: accepted, frame: transientFrame(event) })
    },
    fact(fact: StoredFact) {
      const { seq } = fact
      if (seq === null) return
      release((after) => isBefore(after, seq))
      const frame = factFrame(fact)
      if (frame !== null) publish(frame)
    },
    streamCommitted(cursor) {
      committed = cursor
      release((after) => !isBefore(cursor, after))
    },
  }
}
