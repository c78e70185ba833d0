import { isObject, type JsonObject } from '../core/json.ts'
import { timeOf, type AdminClient } from './admin-client.ts'
import { waitForBacklog } from './backlog.ts'
import { field } from './reply.ts'
import { jsonLine, type Terminal } from './terminal.ts'

interface Redelivery {
  /** Deliveries that were made due. */
  accepted: number
  /** They were dead letters before. */
  again: boolean
  json: boolean
}

/** The dead letters of a handler (null: of all) before something is delivered again. */
export interface DeadLetters {
  /**
   * Waits until the backlog is delivered or dead, and counts what died of what was delivered again.
   * @returns the exit code: 0 when nothing died.
   */
  wait(redelivery: Redelivery, terminal: Terminal): Promise<number>
}

/**
 * Three dead letters are retried, and one dies again: it is a dead letter as before, with a later attempt. One that died
 * meanwhile and is no part of the retry does not count.
 */
export async function watchDeadLetters(client: AdminClient, handler: string | null): Promise<DeadLetters> {
  const before = await lastAttempts()
  return {
    async wait({ accepted, again, json }, terminal) {
      const left = await waitForBacklog(client, handler, terminal)
      if (left !== 0) return left
      const died = [...(await lastAttempts())].filter(([id, at]) =>
        again ? before.has(id) && before.get(id) !== at : before.get(id) !== at,
      )
      const dead = Math.min(died.length, accepted)
      const delivered = accepted - dead
      if (json) terminal.out(jsonLine({ delivered, dead }))
      else terminal.out(`${delivered} delivered, ${dead} dead${again ? ' again' : ''}\n`)
      return dead === 0 ? 0 : 1
    },
  }

  /** When each dead letter was last tried, by its id. */
  async function lastAttempts(): Promise<Map<string, number | null>> {
    const query = { status: 'dead', handler: handler ?? undefined }
    const rows = await client.list('/api/deliveries', query, Infinity)
    return new Map(rows.map((row) => [field(row, 'id'), lastAttemptAt(row)]))
  }
}

function lastAttemptAt({ attempts }: JsonObject): number | null {
  const last = Array.isArray(attempts) ? attempts.at(-1) : undefined
  return isObject(last) ? timeOf(last['at']) : null
}
