import type { StoredFact } from '../../core/fact.ts'
import type { Clock } from '../../std/ports.ts'

/** Transient events that wait for one handler. From there on the newest is dropped. */
const WAITING_MAX = 1000
/** One that has waited longer is dropped: a live view wants what is said now. Milliseconds. */
const WAIT_MAX = 2000
/** A handler with 16 slots for facts gets at most 4 transient events at once. */
const FACT_SLOTS_EACH = 4

/** How many transient events a handler gets at once, at most; facts have `concurrency` slots beside these. */
export function transientSlots(concurrency: number): number {
  return Math.max(1, Math.floor(concurrency / FACT_SLOTS_EACH))
}

/** Transient events for one handler: at most once each, one at a time per session and in its order. */
export interface Transients {
  offer(fact: StoredFact): void
  /** A slot may have become free. */
  next(): void
  /** Drops what waits. Settles when nothing is under way. */
  stop(): Promise<void>
}

interface Waiting {
  fact: StoredFact
  /** Steady milliseconds. */
  since: number
}

/**
 * A handler that takes 200 ms and names `agent.text` gets 2,000 of them in one turn. They use what the facts leave: one
 * starts only while facts and transient events together leave a slot of the handler's concurrency free. A fact never waits
 * for one: a fact counts facts alone, so for the rest of a callback a handler may have `transientSlots` requests more.
 */
export function createTransients(options: {
  slots: number
  /** Slots of the handler that no fact uses or waits for. */
  free: () => number
  send: (fact: StoredFact) => Promise<void>
  onDropped: () => void
  clock: Pick<Clock, 'steady'>
}): Transients {
  const { slots, free, send, onDropped, clock } = options
  let waiting: Waiting[] = []
  let sending = 0
  const sessions = new Set<string | null>()
  let whenIdle: (() => void) | null = null

  const next = (): void => {
    while (waiting.length > 0 && sending < slots && sending < free()) {
      const fact = take()
      if (fact === null) return
      void run(fact)
    }
  }

  const dropStale = (): void => {
    const oldest = clock.steady() - WAIT_MAX
    const fresh = waiting.findIndex(({ since }) => since >= oldest)
    for (const _ of waiting.splice(0, fresh === -1 ? waiting.length : fresh)) onDropped()
  }

  /** The first of a session that has none under way. */
  const take = (): StoredFact | null => {
    dropStale()
    const at = waiting.findIndex(({ fact }) => !sessions.has(fact.sessionId))
    return waiting.splice(at, at === -1 ? 0 : 1)[0]?.fact ?? null
  }

  const run = async (fact: StoredFact): Promise<void> => {
    sending++
    sessions.add(fact.sessionId)
    await send(fact)
    sessions.delete(fact.sessionId)
    sending--
    if (sending === 0) whenIdle?.()
    next()
  }

  return {
    offer(fact) {
      // Facts may use every slot for 30 s: what became stale must not keep out what is said now.
      dropStale()
      if (waiting.length >= WAITING_MAX) return onDropped()
      waiting.push({ fact, since: clock.steady() })
      next()
    },
    next,
    async stop() {
      waiting = []
      const { promise, resolve } = Promise.withResolvers<void>()
      whenIdle = resolve
      if (sending > 0) await promise
    },
  }
}
