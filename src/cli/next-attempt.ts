import type { JsonObject } from '../std/json.ts'
import { timeOf, type AdminClient } from './admin-client.ts'
import { field } from './reply.ts'
import { relative } from './text.ts'

/** The limit of the list: handlers are few, so one page holds them all. */
const ALL = 1000

/**
 * Prints the time of the next attempt. A paused handler gets nothing, even if a delivery is due.
 */
export type NextAttempt = (delivery: JsonObject, now: number) => string

/** Handlers are requested only if a delivery is pending. */
export async function nextAttempt(
  client: AdminClient,
  deliveries: readonly JsonObject[],
): Promise<NextAttempt> {
  const pending = deliveries.some((row) => field(row, 'status') === 'pending')
  const handlers = pending ? await client.list('/api/handlers', {}, ALL) : []
  const states = new Map(handlers.map((row) => [field(row, 'name'), field(row, 'state')]))
  return (delivery, now) => {
    if (field(delivery, 'status') !== 'pending') return ''
    const state = states.get(field(delivery, 'handler'))
    if (state === undefined || state === 'removed') return 'no such handler'
    if (state === 'paused') return 'paused'
    const at = timeOf(delivery['next_at']) ?? 0
    if (at > now) return relative(at, now)
    return state === 'down' ? 'handler down' : 'now'
  }
}
