import type { Clock, Log, Timer } from '../std/ports.ts'
import type { Channel } from '../core/fact.ts'
import type { Observer } from '../core/observer.ts'
import type { Expected, Store } from '../core/store.ts'

/** Interval of the rounds, milliseconds, unless a round shortens it. */
const INTERVAL = 60_000
/** Delay before the next round while there is more to do, milliseconds: other work runs in between. */
const AGAIN = 50
/** Delay while a walk through old facts finds none that can be removed, milliseconds. */
const ON = 1000
/** A channel that has not reported a fact within this time has missed it, milliseconds (config/README.md, Metrics). */
const MISSED_AFTER = 600_000

/**
 * The facts that each channel reports (rules WHS-16 to WHS-22, EVT-38 to EVT-62). Polling is not listed: it reads
 * sessions itself and misses nothing.
 */
export const REPORTED_BY: Record<Exclude<Channel, 'poll'>, ReadonlySet<string>> = {
  stream: new Set([
    'turn.started',
    'turn.completed',
    'turn.failed',
    'turn.ended',
    'action.required',
    'action.resolved',
  ]),
  webhook: new Set([
    'session.created',
    'session.working',
    'session.idle',
    'session.failed',
    'session.requires_action',
    'turn.completed',
    'turn.failed',
  ]),
}

const NOTHING = { facts: 0, more: false }

/** Housekeeping, by the leader: removes old facts that are delivered, and counts facts that a channel missed. */
export function createMaintenance(options: {
  store: Store
  /** How long delivered facts are kept, milliseconds. */
  retention: number
  /** Interval of the rounds, milliseconds. */
  interval?: number
  expected: Expected
  /** False while a read may still return old state of turns and actions that ended long ago. */
  mayPrune: () => boolean
  observer: Observer
  clock: Clock
  log: Log
}): { start(): void; stop(): void } {
  const { store, retention, interval = INTERVAL, expected, mayPrune, observer, clock, log } = options
  let timer: Timer | null = null
  let running = false

  const round = async (): Promise<void> => {
    if (!store.shards.leads) return void (timer = clock.after(interval, () => void round()))
    let wait = interval
    try {
      const looked = await store.log.missed(expected, MISSED_AFTER)
      for (const miss of looked.missed) observer.missed(miss)
      const pruned = mayPrune() ? await store.log.prune(retention) : NOTHING
      if (pruned.facts > 0) log.debug({ facts: pruned.facts }, 'store: pruned')
      if (looked.more || (pruned.more && pruned.facts > 0)) wait = AGAIN
      else if (pruned.more) wait = Math.min(interval, ON)
    } catch (error) {
      if (!running) return
      log.error({ err: error }, 'store: housekeeping failed')
    }
    if (running) timer = clock.after(wait, () => void round())
  }

  return {
    start() {
      running = true
      timer = clock.after(interval, () => void round())
    },
    stop() {
      running = false
      timer?.cancel()
    },
  }
}

/**
 * A replica that does not lead may write nothing for hours. After a short outage of the database, the refusal of its last
 * write stayed its state. So while the last write was refused, an empty one is tried.
 */
export function createWriteProbe(options: {
  store: Pick<Store, 'log'>
  /** Whether the last write was refused. */
  refused: () => boolean
  clock: Clock
}): { start(): void; stop(): void } {
  const { store, refused, clock } = options
  let timer: Timer | null = null
  const round = async (): Promise<void> => {
    // A refusal is reported by the store.
    if (refused()) await store.log.commit({}).catch(() => undefined)
    if (timer !== null) timer = clock.after(INTERVAL, () => void round())
  }
  return {
    start() {
      timer = clock.after(INTERVAL, () => void round())
    },
    stop() {
      timer?.cancel()
      timer = null
    },
  }
}
