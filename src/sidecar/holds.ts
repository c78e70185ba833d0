import type { RefusedFor } from '../client/transport/budget.ts'
import type { ServiceClient } from '../client/service.ts'
import type { Store } from '../core/store.ts'
import { messageOf } from '../std/errors.ts'
import { isObject, numberOf, parseJson, stringOf } from '../std/json.ts'
import type { Clock, Log, Timer } from '../std/ports.ts'

const HELD = 'held'
/** A shorter wait is over before the others know of it, milliseconds. */
const SHORTEST = 1000
/** Milliseconds until a failed exchange is repeated. */
const AGAIN = 1000

/** A wait as it is stored: it ends at a time on the service's clock, which is the same for all processes. */
interface Held extends RefusedFor {
  until: number
  /** From the clock of the process that was refused to the service's, milliseconds. */
  offset: number
  /** Whose wait it is; null: an older version did not store this. */
  credential: string | null
}

interface SharedBudget {
  /** Heeds the waits that are stored. Called before the first request, also of a new token. */
  heed(): Promise<void>
  stop(): void
}

/**
 * Three processes have one token. When the service refuses one of them for 30 seconds, the others send nothing for that time
 * either, and each has a third of the requests that may be under way. A process that starts meanwhile waits, too. A process
 * with a new token does not.
 */
export function shareBudget(parts: {
  service: Pick<ServiceClient, 'share' | 'onRefused' | 'heed' | 'clockOffset' | 'clockOpen' | 'credential'>
  store: Pick<Store, 'settings' | 'shards'>
  clock: Pick<Clock, 'now' | 'after'>
  log: Log
}): SharedBudget {
  const { service, store, clock, log } = parts
  /** The waits that this process knows, by credential and rate bucket. */
  const known = new Map<string, Held>()
  /** Those for which the client waits. One of another token waits here until this process has that token. */
  const heeded = new WeakSet<Held>()
  let again: Timer | null = null
  let stopped = false

  /**
   * Milliseconds left. Before the first answer the service's clock is not known. Ours may be ahead of it, as that of the process
   * that was refused; so this one rather waits too long, but never longer than was asked for.
   */
  const left = ({ until, offset, wait }: Held): number => {
    const toService = service.clockOpen() < Infinity ? service.clockOffset() : Math.min(offset, 0)
    return Math.min(until - clock.now() - toService, wait)
  }
  const isOurs = ({ credential }: Held): boolean => credential === null || credential === service.credential()
  const nameOf = ({ credential, bucket }: Held): string => JSON.stringify([credential, bucket])

  const note = (held: Held): boolean => {
    const before = known.get(nameOf(held))
    if (before !== undefined && before.until + SHORTEST > held.until) return false
    known.set(nameOf(held), held)
    return true
  }

  /**
   * Two processes that are refused at once may overwrite each other's entry. What is missing is written again at the next
   * look.
   */
  const exchange = async (): Promise<void> => {
    const stored = heldIn(await store.settings.checkpoint(HELD))
    for (const held of stored) if (left(held) > 0) note(held)
    for (const [name, held] of known) {
      if (left(held) <= 0) known.delete(name)
      else if (isOurs(held) && !heeded.has(held)) {
        heeded.add(held)
        service.heed({ ...held, wait: left(held) })
      }
    }
    const untils = new Map(stored.map((held) => [nameOf(held), held.until]))
    const isMissing = (held: Held): boolean => (untils.get(nameOf(held)) ?? 0) + SHORTEST <= held.until
    if ([...known.values()].some(isMissing))
      await store.settings.setCheckpoint(HELD, JSON.stringify([...known.values()]), 'waits')
  }

  const share = (): Promise<void> =>
    exchange().catch((error: unknown) => {
      log.debug({ error: messageOf(error) }, 'service: a wait could not be shared with the other replicas')
      if (!stopped)
        again ??= clock.after(AGAIN, () => {
          again = null
          void share()
        })
    })

  service.onRefused((refused) => {
    const { wait } = refused
    if (wait < SHORTEST || stopped) return
    const offset = service.clockOffset()
    const until = Math.round(clock.now() + offset + wait)
    const held = { ...refused, until, offset, credential: service.credential() }
    heeded.add(held)
    if (note(held)) void share()
  })
  store.shards.subscribe({
    population(live) {
      service.share(live)
    },
    woken({ topics }) {
      if (topics.has('waits')) void share()
    },
  })
  return {
    heed: share,
    stop() {
      stopped = true
      again?.cancel()
    },
  }
}

function heldIn(text: string | null): Held[] {
  const list = text === null ? null : parseJson(text)
  if (!Array.isArray(list)) return []
  return list.flatMap((one: unknown): Held[] => {
    if (!isObject(one)) return []
    const [until, status, code] = [numberOf(one.until), numberOf(one.status), stringOf(one.code)]
    if (until === null || status === null || code === null) return []
    const [bucket, credential] = [stringOf(one.bucket), stringOf(one.credential)]
    // An older version stored no length, and no offset.
    const [wait, offset] = [numberOf(one.wait) ?? Infinity, numberOf(one.offset) ?? 0]
    return [{ bucket, until, status, code, wait, offset, credential }]
  })
}
