import type { RefusedFor } from '../client/transport/budget.ts'
import type { ServiceClient } from '../client/service.ts'
import type { Store } from '../core/store.ts'
import { messageOf } from '../std/errors.ts'
import { isObject, numberOf, parseJson, stringOf } from '../std/json.ts'
import type { Clock, Log } from '../std/ports.ts'

const HELD = 'held'
/** A shorter wait is over before the others know of it, milliseconds. */
const SHORTEST = 1000

/** A wait as it is stored: it ends at a time on the service's clock, which is the same for all processes. */
interface Held extends RefusedFor {
  until: number
}

/**
 * Three processes have one token. When the service refuses one of them for 30 seconds, the others send nothing for that time
 * either, and each has a third of the requests that may be under way. So with a process that starts meanwhile.
 * @returns what must be called before the first request: it heeds the waits that are stored.
 */
export function shareBudget(parts: {
  service: Pick<ServiceClient, 'share' | 'onRefused' | 'heed' | 'clockOffset'>
  store: Pick<Store, 'settings' | 'shards'>
  clock: Pick<Clock, 'now'>
  log: Log
}): () => Promise<void> {
  const { service, store, clock, log } = parts
  /** The waits that this process knows, by rate bucket. null: every bucket. */
  const known = new Map<string | null, Held>()
  const serviceTime = (): number => clock.now() + service.clockOffset()

  const note = (held: Held): boolean => {
    const before = known.get(held.bucket)
    if (before !== undefined && before.until + SHORTEST > held.until) return false
    known.set(held.bucket, held)
    return true
  }

  /**
   * Two processes that are refused at once may overwrite each other's entry. What is missing is written again at the next
   * look.
   */
  const exchange = async (): Promise<void> => {
    const now = serviceTime()
    const stored = heldIn(await store.settings.checkpoint(HELD))
    // Before the first answer, the service's clock is not known, and ours may be wrong: no wait is longer than was asked for.
    for (const held of stored)
      if (held.until > now && note(held))
        service.heed({ ...held, wait: Math.min(held.until - now, held.wait) })
    for (const [bucket, { until }] of known) if (until <= now) known.delete(bucket)
    const untils = new Map(stored.map(({ bucket, until }) => [bucket, until]))
    const isMissing = ({ bucket, until }: Held): boolean => (untils.get(bucket) ?? 0) + SHORTEST <= until
    if ([...known.values()].some(isMissing))
      await store.settings.setCheckpoint(HELD, JSON.stringify([...known.values()]), 'waits')
  }

  const failed = (error: unknown): void =>
    log.debug({ error: messageOf(error) }, 'service: a wait could not be shared with the other replicas')

  service.onRefused((refused) => {
    const { wait } = refused
    if (wait < SHORTEST) return
    if (note({ ...refused, until: Math.round(serviceTime() + wait) })) exchange().catch(failed)
  })
  store.shards.subscribe({
    population(live) {
      service.share(live)
    },
    woken({ topics }) {
      if (topics.has('waits')) exchange().catch(failed)
    },
  })
  return () => exchange().catch(failed)
}

function heldIn(text: string | null): Held[] {
  const list = text === null ? null : parseJson(text)
  if (!Array.isArray(list)) return []
  return list.flatMap((one: unknown) => {
    if (!isObject(one)) return []
    const [until, status, code] = [numberOf(one.until), numberOf(one.status), stringOf(one.code)]
    if (until === null || status === null || code === null) return []
    // An older version stored no length.
    return [{ bucket: stringOf(one.bucket), until, status, code, wait: numberOf(one.wait) ?? Infinity }]
  })
}
