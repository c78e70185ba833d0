import type { StoredFact } from '../../core/fact.ts'
import type { Clock } from '../../std/ports.ts'

/** The most transient events that wait for one handler; at the limit the newest is dropped. */
const WAITING_MAX = 1000
/** An event that has waited longer is dropped: a live view needs current events. Milliseconds. */
const WAIT_MAX = 2000
/** A handler with 16 slots for facts gets at most 4 transient events at once. */
const FACT_SLOTS_EACH = 4

/** The most transient events that a handler gets at once; facts have `concurrency` slots besides. */
export function transientSlots(concurrency: number): number {
  return Math.max(1, Math.floor(concurrency / FACT_SLOTS_EACH))
}

/** Transient events for one handler: at most once each, one at a time per session and in its order. */
export interface Transients {
  offer(fact: StoredFact): void
  /** A slot may have become free. */
  next(): void
  /** Drops the waiting events. Resolves when none is under way. */
  stop(): Promise<void>
}

interface Waiting {
  fact: StoredFact
  /** Steady milliseconds. */
  since: number
}

/**
 * A handler that takes 200 ms for a request and selects `agent.text` gets 2,000 of these events in one turn. They use
 * the slots that facts leave: an event is sent only while facts and events together leave a slot free. For a fact only
 * the slots of other facts count, so it never waits for an event. While events are under way, a handler may therefore
 * have up to `transientSlots` requests more than `concurrency`.
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

  /** The first event of a session that has none under way. */
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
      // Facts may use every slot for 30 s: stale events must not delay current ones.
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
