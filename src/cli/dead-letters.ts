import { parseDeliveryId } from '../core/delivery.ts'
import { isObject, stringOf, type JsonObject } from '../std/json.ts'
import { timeOf, type AdminClient } from './admin-client.ts'
import { waitForBacklog } from './backlog.ts'
import { field } from './reply.ts'
import { jsonLine, type Terminal } from './terminal.ts'
import { count } from './text.ts'

interface Redelivery {
  /** Deliveries that were made due. */
  accepted: number
  /** They were dead letters before. */
  again: boolean
  json: boolean
}

/** Deliveries of a handler, or of all, of facts since a time, or of all times. */
interface Selection {
  handler?: string | undefined
  since?: string | undefined
}

/** The dead letters of a selection before something is delivered again. */
export interface DeadLetters {
  /**
   * Waits until the backlog is delivered or dead, and counts what died of what was delivered again.
   * @returns the exit code: 0 when nothing of it died.
   */
  wait(redelivery: Redelivery, terminal: Terminal): Promise<number>
}

/**
 * Three dead letters are retried, and one dies again: it is a dead letter as before, with a later attempt. Twelve facts
 * are replayed, and a thirteenth, which is newer, dies meanwhile: it is no part of the replay and is reported apart.
 */
export async function watchDeadLetters(client: AdminClient, selection: Selection): Promise<DeadLetters> {
  const newest = await newestPosition()
  const before = await lastAttempts()
  return {
    async wait({ accepted, again, json }, terminal) {
      const left = await waitForBacklog(client, selection.handler ?? null, terminal)
      if (left !== 0) return left
      const died = [...(await lastAttempts())].filter(([id, at]) => before.get(id) !== at)
      const isPart = (id: string): boolean => (again ? before.has(id) : positionOf(id) <= newest)
      const dead = Math.min(died.filter(([id]) => isPart(id)).length, accepted)
      const delivered = accepted - dead
      if (json) terminal.out(jsonLine({ delivered, dead }))
      else terminal.out(`${delivered} delivered, ${dead} dead${again ? ' again' : ''}\n`)
      const others = died.length - dead
      if (others > 0) terminal.err(`${count(others, 'other delivery', 'other deliveries')} died meanwhile\n`)
      return dead === 0 ? 0 : 1
    },
  }

  /** The place in the log of the newest fact that any handler was to get. */
  async function newestPosition(): Promise<number> {
    const [row] = await client.list('/api/deliveries', {}, 1)
    return row === undefined ? Infinity : positionOf(field(row, 'id'))
  }

  /** When each dead letter was last tried, by its id. */
  async function lastAttempts(): Promise<Map<string, number | null>> {
    const found = new Map<string, number | null>()
    for await (const row of client.each('/api/deliveries', { status: 'dead', ...selection })) {
      found.set(stringOf(row['id']) ?? '', lastAttemptAt(row))
    }
    return found
  }
}

function positionOf(id: string): number {
  return parseDeliveryId(id)?.pos ?? 0
}

function lastAttemptAt({ attempts }: JsonObject): number | null {
  const last = Array.isArray(attempts) ? attempts.at(-1) : undefined
  return isObject(last) ? timeOf(last['at']) : null
}
