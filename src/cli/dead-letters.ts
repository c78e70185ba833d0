import { parseDeliveryId } from '../core/delivery.ts'
import { isObject, stringOf, type JsonObject } from '../std/json.ts'
import { timeOf, type AdminClient } from './admin-client.ts'
import { waitForBacklog } from './backlog.ts'
import { field } from './reply.ts'
import { jsonLine, type Terminal } from './terminal.ts'
import { count } from './text.ts'

interface Redelivery {
  /** Deliveries that are sent again. */
  accepted: number
  /** Whether they were dead letters before. */
  again: boolean
  json: boolean
}

/** The deliveries of one handler (null: of all), for facts since a time (null: since the beginning). */
interface Selection {
  handler?: string | undefined
  since?: string | undefined
}

/** The dead letters of a selection before something is delivered again. */
export interface DeadLetters {
  /**
   * Waits until the backlog is delivered or dead, and counts the dead letters of the repeated
   * deliveries. @returns the exit code: 0 when there are none.
   */
  wait(redelivery: Redelivery, terminal: Terminal): Promise<number>
}

/**
 * Three dead letters are retried, and one fails again: it is a dead letter as before, with a later attempt. Twelve
 * facts are replayed, and a newer one is dead-lettered meanwhile: it does not belong to the replay and is reported
 * separately.
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
      if (others > 0)
        terminal.err(`dead-lettered meanwhile: ${count(others, 'other delivery', 'other deliveries')}\n`)
      return dead === 0 ? 0 : 1
    },
  }

  /** The position of the newest fact with a delivery. */
  async function newestPosition(): Promise<number> {
    const [row] = await client.list('/api/deliveries', {}, 1)
    return row === undefined ? Infinity : positionOf(field(row, 'id'))
  }

  /** The time of the last attempt of each dead letter, by its id. */
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
