import { ANY_FUNCTION } from '../../../core/tool.ts'
import type { Listed } from '../../../core/listed.ts'
import type { OpenAction, OpenFunction, OpenTurn, StoreReader } from '../../../core/store-reader.ts'
import { parseAction, parseSession, parseTurn } from '../../../core/wire.ts'
import { list, mapListed, NOTHING } from './listing.ts'
import type { Sqlite } from './open.ts'
import { objectOf } from '../../../std/depth.ts'

/** An open turn, with its session. */
export interface TurnRow {
  raw: string
  session: string
}

export interface ActionRow extends TurnRow {
  opened_at: number
}

const UNSETTLED = `FROM turns t JOIN sessions s ON s.id = t.session_id
  WHERE t.settled = 0 AND t.raw IS NOT NULL AND s.deleted_at IS NULL`
const OPEN = `FROM actions a JOIN sessions s ON s.id = a.session_id
  WHERE a.resolved_at IS NULL AND s.deleted_at IS NULL`
const SINCE = 'coalesce(a.created_at, a.opened_at)'

/** Open turns and actions, which a person, an app or the service still has to finish; the oldest first. */
export function createWaiting(
  db: Sqlite,
): Pick<StoreReader, 'openTurns' | 'openActions' | 'functionsBeside'> {
  const turnAt = db
    .prepare<[string], number>('SELECT coalesce(created_at, 0) FROM turns WHERE id = ?')
    .pluck()
  const turns = db.prepare<[number, string, number], TurnRow>(
    `SELECT t.raw, s.raw AS session ${UNSETTLED} AND (coalesce(t.created_at, 0), t.id) > (?, ?)
     ORDER BY coalesce(t.created_at, 0), t.id LIMIT ?`,
  )
  const actionAt = db.prepare<[string], number>(`SELECT ${SINCE} FROM actions a WHERE a.call_id = ?`).pluck()
  const actions = db.prepare<[number, string, number], ActionRow>(
    `SELECT a.raw, a.opened_at, s.raw AS session ${OPEN} AND (${SINCE}, a.call_id) > (?, ?)
     ORDER BY ${SINCE}, a.call_id LIMIT ?`,
  )

  const functions = db.prepare<[{ tools: string; limit: number }], OpenFunction>(
    `SELECT substr(iif(json_valid(a.raw), a.raw ->> 'name', NULL), 1, 65) AS name, count(*) AS calls, min(${SINCE}) AS oldest
     ${OPEN} AND a.type = 'function_call' GROUP BY 1
     HAVING name IS NOT NULL AND name NOT IN (SELECT value FROM json_each(@tools))
       AND ('${ANY_FUNCTION}' NOT IN (SELECT value FROM json_each(@tools))
         OR name GLOB '*[^A-Za-z0-9_-]*' OR length(name) NOT BETWEEN 1 AND 64)
     ORDER BY oldest, name LIMIT @limit`,
  )

  return {
    async functionsBeside(tools, limit) {
      return functions.all({ tools: JSON.stringify(tools), limit })
    },
    async openTurns({ after, limit }) {
      const at = after === undefined ? -1 : turnAt.get(after)
      if (at === undefined) return NOTHING
      return listTurns(turns.iterate(at, after ?? '', limit + 1), limit)
    },
    async openActions({ after, limit }) {
      const at = after === undefined ? -1 : actionAt.get(after)
      if (at === undefined) return NOTHING
      return listActions(actions.iterate(at, after ?? '', limit + 1), limit)
    },
  }
}

const sizeOf = ({ raw, session }: TurnRow): number => raw.length + session.length

export function listTurns(rows: Iterable<TurnRow>, limit: number): Listed<OpenTurn> {
  return mapListed(list(rows, limit, sizeOf), ({ raw, session: of }) => {
    const [turn, session] = [parseTurn(objectOf(raw)), parseSession(objectOf(of))]
    return turn === null || session === null ? [] : [{ turn, session }]
  })
}

export function listActions(rows: Iterable<ActionRow>, limit: number): Listed<OpenAction> {
  return mapListed(list(rows, limit, sizeOf), ({ raw, opened_at: openedAt, session: of }) => {
    const [action, session] = [parseAction(objectOf(raw)), parseSession(objectOf(of))]
    return action === null || session === null ? [] : [{ action, openedAt, session }]
  })
}
