import { writeJson } from '../../../std/json.ts'
import { ITEMS_SINCE, lastItemOf } from '../../../core/checkpoint.ts'
import type { Fact } from '../../../core/fact.ts'
import { summaryOf, type Action, type SessionSummary } from '../../../core/resource.ts'
import type { KnownSession, KnownTurn, Reading, SessionGlance } from '../../../core/store.ts'
import { parseAction } from '../../../core/wire.ts'
import {
  glanceOf,
  rowAfter,
  sessionOf,
  SETTLED_KEPT,
  turnOf,
  type GlanceRow,
  type KnownRow,
  type SessionRow,
  type TurnRow,
} from '../sqlite/sessions.ts'
import { objectOf } from '../../../std/depth.ts'
import type { Queries } from './database.ts'

/**
 * The columns have names, here and in every statement: with `*`, a column that a newer replica adds would change the result
 * of a prepared statement, and the server refuses that.
 */
export const SESSION_COLUMNS =
  'id, status, updated_at, raw, at_rest, revision, baseline, first_seen, read_at, deleted_at'
const TURN_COLUMNS =
  'id, session_id, created_at, raw, final, settled, final_fact, ended_frame_at, final_read_at'

const PUT = `
  INSERT INTO sidecar.sessions AS s (id, status, updated_at, raw, at_rest, revision, baseline, first_seen, read_at, deleted_at, title)
  VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8, $9, $10)
  ON CONFLICT (id) DO UPDATE SET status = excluded.status, updated_at = excluded.updated_at, raw = excluded.raw,
    at_rest = excluded.at_rest, revision = s.revision + 1, baseline = excluded.baseline,
    read_at = excluded.read_at, deleted_at = excluded.deleted_at, title = excluded.title`

const PUT_TURNS = `
  INSERT INTO sidecar.turns AS t (id, session_id, created_at, raw, final, settled, final_fact, ended_frame_at, final_read_at, artifacts)
  SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::smallint[], $6::smallint[], $7::smallint[],
    $8::bigint[], $9::bigint[], $10::text[])
  ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at, raw = excluded.raw, final = excluded.final,
    settled = excluded.settled, final_fact = excluded.final_fact,
    ended_frame_at = coalesce(t.ended_frame_at, excluded.ended_frame_at),
    final_read_at = coalesce(t.final_read_at, excluded.final_read_at), artifacts = excluded.artifacts`

/** Sessions, turns and actions as they were last read. */
export class Sessions {
  readonly #now: () => number
  readonly #onTwin: (callId: string, sessionId: string) => void

  /** `now`: the store's clock. `onTwin`: an action has the id of an action of another turn, and makes no fact. */
  constructor(now: () => number, onTwin: (callId: string, sessionId: string) => void) {
    this.#now = now
    this.#onTwin = onTwin
  }

  async known(queries: Queries, id: string, turnIds: readonly string[]): Promise<KnownSession | null> {
    const [row] = await queries.rows<KnownRow>(
      `SELECT ${SESSION_COLUMNS}, (SELECT value FROM sidecar.checkpoints WHERE name = $2) AS last_item,
         (SELECT value FROM sidecar.checkpoints WHERE name = $3) AS items_since
       FROM sidecar.sessions WHERE id = $1`,
      [id, lastItemOf(id), ITEMS_SINCE],
    )
    if (row === undefined) return null
    const { deleted, atRest } = glanceOf(row)
    return {
      deleted,
      atRest,
      revision: row.revision,
      session: sessionOf(row),
      baseline: row.baseline,
      items: { last: row.last_item, since: row.items_since },
      turns: await this.turnsOf(queries, id, turnIds),
      actions: await this.#openActions(queries, id),
    }
  }

  /** The newest settled turns, all unsettled ones, and `turnIds`. The session itself may not be known yet. */
  async turnsOf(queries: Queries, id: string, turnIds: readonly string[]): Promise<KnownTurn[]> {
    const rows = await queries.rows<TurnRow>(
      `SELECT ${TURN_COLUMNS} FROM sidecar.turns WHERE (session_id = $1 AND settled = 0) OR id = ANY ($2::text[]) OR id IN
         (SELECT id FROM sidecar.turns WHERE session_id = $1 AND settled = 1 ORDER BY created_at DESC NULLS LAST LIMIT ${SETTLED_KEPT})
       ORDER BY settled, CASE settled WHEN 0 THEN created_at END NULLS FIRST, created_at DESC NULLS LAST, id`,
      [id, turnIds],
    )
    return rows.map((row) => turnOf(row, this.#now()))
  }

  async #openActions(queries: Queries, id: string): Promise<Action[]> {
    const rows = await queries.rows<{ raw: string }>(
      `SELECT raw FROM sidecar.actions WHERE session_id = $1 AND resolved_at IS NULL
       ORDER BY created_at NULLS FIRST, call_id`,
      [id],
    )
    return rows.flatMap(({ raw }) => parseAction(objectOf(raw)) ?? [])
  }

  async #row(queries: Queries, id: string): Promise<SessionRow | null> {
    const [row] = await queries.rows<SessionRow>(
      `SELECT ${SESSION_COLUMNS} FROM sidecar.sessions WHERE id = $1`,
      [id],
    )
    return row ?? null
  }

  async summary(queries: Queries, id: string): Promise<SessionSummary | null> {
    const row = await this.#row(queries, id)
    return row === null ? null : summaryOf(sessionOf(row))
  }

  async glance(queries: Queries, ids: readonly string[]): Promise<Map<string, SessionGlance>> {
    const rows = await queries.rows<GlanceRow & Pick<SessionRow, 'id'>>(
      'SELECT id, status, updated_at, at_rest, deleted_at FROM sidecar.sessions WHERE id = ANY ($1::text[])',
      [ids],
    )
    return new Map(rows.map((row) => [row.id, glanceOf(row)]))
  }

  /**
   * Stores the result of a read, unless another read of the session was stored after this one began.
   * @returns null when it was not stored; `defers`: calls of the session may wait for the app.
   */
  async write(queries: Queries, reading: Reading): Promise<{ defers: boolean } | null> {
    const [row] = await queries.rows<SessionRow & { defers: boolean }>(
      `SELECT ${SESSION_COLUMNS},
         EXISTS (SELECT 1 FROM sidecar.calls WHERE session_id = $1 AND deferred = 1 AND ended_at IS NULL) AS defers
       FROM sidecar.sessions WHERE id = $1 FOR UPDATE`,
      [reading.sessionId],
    )
    if ((row?.revision ?? null) !== reading.revision) return null
    const { at } = reading
    const after = rowAfter(reading, row)
    if (after !== null) {
      const { id, status, updated_at, raw, at_rest, baseline, first_seen, read_at, deleted_at } = after
      const { title } = reading.session ?? sessionOf(after)
      const values = [id, status, updated_at, raw, at_rest, baseline, first_seen, read_at, deleted_at, title]
      await queries.change(PUT, values)
    }
    if (reading.turns.length > 0) await this.#writeTurns(queries, reading.turns)
    for (const action of reading.opened) {
      const [owner] = await queries.rows<{ session_id: string; turn_id: string | null }>(
        'SELECT session_id, turn_id FROM sidecar.actions WHERE call_id = $1',
        [action.callId],
      )
      if (owner !== undefined && (owner.session_id !== reading.sessionId || owner.turn_id !== action.turnId))
        this.#onTwin(action.callId, reading.sessionId)
      await queries.change(
        `INSERT INTO sidecar.actions (call_id, session_id, turn_id, type, raw, created_at, opened_at, name)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (call_id) DO UPDATE SET resolved_at = NULL`,
        [
          action.callId,
          reading.sessionId,
          action.turnId,
          action.type,
          writeJson(action.raw),
          action.createdAt,
          at,
          typeof action.raw['name'] === 'string' ? action.raw['name'] : null,
        ],
      )
    }
    if (reading.resolved.length > 0)
      await queries.change('UPDATE sidecar.actions SET resolved_at = $1 WHERE call_id = ANY ($2::text[])', [
        at,
        reading.resolved,
      ])
    return { defers: row?.defers !== false }
  }

  async #writeTurns(queries: Queries, given: readonly KnownTurn[]): Promise<void> {
    const now = this.#now()
    // One statement can change a row only once. If a turn is given several times, its last state is written, with the
    // first times.
    const last = new Map<string, KnownTurn>()
    for (const one of given) {
      const before = last.get(one.turn.id)
      const endedFrameAt = before?.endedFrameAt ?? one.endedFrameAt
      last.set(one.turn.id, { ...one, endedFrameAt, finalFor: before?.finalFor ?? one.finalFor })
    }
    const turns = [...last.values()].toSorted((a, b) => (a.turn.id < b.turn.id ? -1 : 1))
    await queries.change(PUT_TURNS, [
      turns.map(({ turn }) => turn.id),
      turns.map(({ turn }) => turn.sessionId),
      turns.map(({ turn }) => turn.createdAt),
      turns.map(({ turn }) => writeJson(turn.raw)),
      turns.map(({ final }) => (final ? 1 : 0)),
      turns.map(({ settled }) => (settled ? 1 : 0)),
      turns.map(({ finalFact }) => (finalFact ? 1 : 0)),
      turns.map(({ endedFrameAt }) => endedFrameAt),
      turns.map(({ finalFor }) => (finalFor === null ? null : Math.round(now - finalFor))),
      turns.map(({ turn }) => turn.artifacts),
    ])
  }

  /** Stores when the stream's turn.ended frame came: the final fact of a turn waits for that frame. */
  async endTurn(queries: Queries, { turnId, sessionId, seq, at }: Fact): Promise<void> {
    if (seq === null || turnId === null || sessionId === null) return
    await queries.change(
      `INSERT INTO sidecar.turns AS t (id, session_id, ended_frame_at) VALUES ($1, $2, $3)
       ON CONFLICT (id) DO UPDATE SET ended_frame_at = coalesce(t.ended_frame_at, excluded.ended_frame_at)`,
      [turnId, sessionId, at],
    )
  }

  /** The session left the scope: its actions are resolved, and a read that is under way is not stored. */
  async leave(queries: Queries, id: string, at: number): Promise<void> {
    await queries.change(
      `UPDATE sidecar.sessions SET deleted_at = $1, at_rest = 1, revision = revision + 1
       WHERE id = $2 AND deleted_at IS NULL`,
      [at, id],
    )
    await queries.change(
      'UPDATE sidecar.actions SET resolved_at = $1 WHERE session_id = $2 AND resolved_at IS NULL',
      [at, id],
    )
  }

  /** A plan that is made once takes a limit that is a parameter for a tenth of all rows, and sorts them. */
  async alive(queries: Queries, after: string, limit: number): Promise<string[]> {
    return ids(
      await queries.rows(
        `SELECT id FROM sidecar.sessions WHERE deleted_at IS NULL AND id > $1 ORDER BY id LIMIT ${limit}`,
        [after],
      ),
    )
  }

  async active(queries: Queries, after: string, limit: number): Promise<string[]> {
    return ids(
      await queries.rows(
        `SELECT id FROM sidecar.sessions WHERE deleted_at IS NULL AND at_rest = 0 AND id > $1 ORDER BY id LIMIT ${limit}`,
        [after],
      ),
    )
  }

  async count(queries: Queries): Promise<{ alive: number; active: number }> {
    const [row] = await queries.rows<{ alive: number; active: number }>(
      `SELECT count(*) AS alive, count(*) FILTER (WHERE at_rest = 0) AS active FROM sidecar.sessions WHERE deleted_at IS NULL`,
    )
    return row ?? { alive: 0, active: 0 }
  }
}

function ids(rows: readonly { id: string }[]): string[] {
  return rows.map(({ id }) => id)
}
