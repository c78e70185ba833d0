import { objectOf } from '../../../std/depth.ts'
import { writeJson } from '../../../std/json.ts'
import { ITEMS_SINCE, lastItemOf } from '../../../core/checkpoint.ts'
import { transcriptType, type Fact } from '../../../core/fact.ts'
import { summaryOf, type Action, type Session, type SessionSummary } from '../../../core/resource.ts'
import type { KnownSession, KnownTurn, Reading, SessionGlance } from '../../../core/store.ts'
import { parseAction, parseSession, parseTurn } from '../../../core/wire.ts'
import type { Clock } from '../../../std/ports.ts'
import type { Sqlite } from './open.ts'

/** The type of the fact that a turn.ended frame becomes. */
export const TURN_ENDED = transcriptType('turn.ended')
/** How many of the newest settled turns a comparison needs, to find where it may stop reading. */
export const SETTLED_KEPT = 3

interface ActionRow {
  call_id: string
  raw: string
}

/** Sessions, turns and actions as they were last read. */
export class Sessions {
  readonly #clock: Clock
  readonly #get
  readonly #known
  readonly #before
  readonly #glance
  readonly #put
  readonly #unsettled
  readonly #settled
  readonly #named
  readonly #putTurn
  readonly #endTurn
  readonly #openActions
  readonly #addAction
  readonly #ownerOf
  readonly #resolve
  readonly #alive
  readonly #active
  readonly #countAlive
  readonly #countActive
  readonly #leave
  readonly #resolveAll

  readonly onTwin: (callId: string, sessionId: string) => void

  /** `onTwin`: an action has the id of an action of another turn, and makes no fact. */
  constructor(db: Sqlite, clock: Clock, onTwin: (callId: string, sessionId: string) => void) {
    this.#clock = clock
    this.onTwin = onTwin
    this.#get = db.prepare<[string], SessionRow>('SELECT * FROM sessions WHERE id = ?')
    this.#known = db.prepare<[string, string, string], KnownRow>(
      `SELECT *, (SELECT value FROM checkpoints WHERE name = ?) AS last_item,
         (SELECT value FROM checkpoints WHERE name = ?) AS items_since FROM sessions WHERE id = ?`,
    )
    this.#before = db.prepare<[string], SessionRow & { defers: number }>(
      `SELECT *, EXISTS (SELECT 1 FROM calls WHERE session_id = sessions.id AND deferred = 1 AND ended_at IS NULL) AS defers
       FROM sessions WHERE id = ?`,
    )
    // A sweep compares 100,000 sessions: their resources are not read.
    this.#glance = db.prepare<[string], GlanceRow>(
      'SELECT status, updated_at, at_rest, deleted_at FROM sessions WHERE id = ?',
    )
    this.#put = db.prepare(
      `INSERT INTO sessions (id, status, updated_at, raw, at_rest, revision, baseline, first_seen, read_at, deleted_at)
       VALUES (?, ?, ?, ?, ?, 1, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET status = excluded.status, updated_at = excluded.updated_at, raw = excluded.raw,
         at_rest = excluded.at_rest, revision = revision + 1, baseline = excluded.baseline,
         read_at = excluded.read_at, deleted_at = excluded.deleted_at`,
    )
    this.#unsettled = db.prepare<[string], TurnRow>(
      'SELECT * FROM turns WHERE session_id = +? AND settled = 0 ORDER BY created_at',
    )
    this.#settled = db.prepare<[string, number], TurnRow>(
      'SELECT * FROM turns WHERE session_id = +? AND settled = 1 ORDER BY created_at DESC LIMIT +?',
    )
    this.#named = db.prepare<[string], TurnRow>(
      'SELECT * FROM turns WHERE id IN (SELECT value FROM json_each(?))',
    )
    this.#putTurn = db.prepare(
      `INSERT INTO turns (id, session_id, created_at, raw, final, settled, final_fact, ended_frame_at, final_read_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at, raw = excluded.raw, final = excluded.final,
         settled = excluded.settled, final_fact = excluded.final_fact,
         ended_frame_at = coalesce(ended_frame_at, excluded.ended_frame_at),
         final_read_at = coalesce(final_read_at, excluded.final_read_at)`,
    )
    this.#endTurn = db.prepare<[string, string, number]>(
      `INSERT INTO turns (id, session_id, ended_frame_at) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET ended_frame_at = coalesce(ended_frame_at, excluded.ended_frame_at)`,
    )
    this.#openActions = db.prepare<[string], ActionRow>(
      'SELECT call_id, raw FROM actions WHERE session_id = +? AND resolved_at IS NULL ORDER BY created_at, call_id',
    )
    this.#addAction = db.prepare(
      `INSERT INTO actions (call_id, session_id, type, raw, created_at, opened_at) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (call_id) DO UPDATE SET resolved_at = NULL`,
    )
    this.#ownerOf = db.prepare<[string], { session_id: string; turn_id: string | null }>(
      "SELECT session_id, iif(json_valid(raw), raw ->> 'turn_id', NULL) AS turn_id FROM actions WHERE call_id = ?",
    )
    this.#resolve = db.prepare<[number, string]>('UPDATE actions SET resolved_at = ? WHERE call_id = ?')
    this.#alive = db
      .prepare<[string, number], string>(
        'SELECT id FROM sessions WHERE deleted_at IS NULL AND id > ? ORDER BY id LIMIT +?',
      )
      .pluck()
    this.#active = db
      .prepare<[string, number], string>(
        'SELECT id FROM sessions WHERE deleted_at IS NULL AND at_rest = 0 AND id > ? ORDER BY id LIMIT +?',
      )
      .pluck()
    this.#leave = db.prepare<[number, string]>(
      `UPDATE sessions SET deleted_at = ?, at_rest = 1, revision = revision + 1
       WHERE id = ? AND deleted_at IS NULL`,
    )
    this.#resolveAll = db.prepare<[number, string]>(
      'UPDATE actions SET resolved_at = ? WHERE session_id = ? AND resolved_at IS NULL',
    )
    this.#countAlive = db
      .prepare<[], number>('SELECT count(*) FROM sessions WHERE deleted_at IS NULL')
      .pluck()
    this.#countActive = db
      .prepare<[], number>('SELECT count(*) FROM sessions WHERE deleted_at IS NULL AND at_rest = 0')
      .pluck()
  }

  known(id: string, turnIds: readonly string[]): KnownSession | null {
    const row = this.#known.get(lastItemOf(id), ITEMS_SINCE, id)
    if (row === undefined) return null
    const { deleted, atRest } = glanceOf(row)
    return {
      deleted,
      atRest,
      revision: row.revision,
      session: sessionOf(row),
      baseline: row.baseline,
      items: { last: row.last_item, since: row.items_since },
      turns: this.turnsOf(id, turnIds),
      actions: this.openActions(id),
    }
  }

  /** The newest settled turns, all unsettled ones, and `turnIds`. The session itself may not be known yet. */
  turnsOf(id: string, turnIds: readonly string[]): KnownTurn[] {
    const rows = new Map<string, TurnRow>()
    for (const row of this.#unsettled.all(id)) rows.set(row.id, row)
    for (const row of this.#settled.all(id, SETTLED_KEPT)) rows.set(row.id, row)
    const further = turnIds.filter((turnId) => !rows.has(turnId))
    // Webhooks may announce a hundred turns of one session in a second, so one statement reads them.
    if (further.length > 0) for (const row of this.#named.all(JSON.stringify(further))) rows.set(row.id, row)
    const now = this.#clock.steady()
    return [...rows.values()].map((row) => turnOf(row, now))
  }

  openActions(id: string): Action[] {
    return this.#openActions.all(id).flatMap((row) => parseAction(objectOf(row.raw)) ?? [])
  }

  summary(id: string): SessionSummary | null {
    const row = this.#get.get(id)
    return row === undefined ? null : summaryOf(sessionOf(row))
  }

  glance(ids: readonly string[]): Map<string, SessionGlance> {
    const found = new Map<string, SessionGlance>()
    for (const id of ids) {
      const row = this.#glance.get(id)
      if (row !== undefined) found.set(id, glanceOf(row))
    }
    return found
  }

  /**
   * Stores the result of a read, unless another read of the session was stored after this one began.
   * @returns null when it was not stored; `defers`: calls of the session may wait for the app.
   */
  write(reading: Reading): { defers: boolean } | null {
    const row = this.#before.get(reading.sessionId)
    if ((row?.revision ?? null) !== reading.revision) return null
    const after = rowAfter(reading, row)
    if (after !== null) {
      const { id, status, updated_at, raw, at_rest, baseline, first_seen, read_at, deleted_at } = after
      this.#put.run(id, status, updated_at, raw, at_rest, baseline, first_seen, read_at, deleted_at)
    }
    for (const turn of reading.turns) this.#writeTurn(turn)
    for (const action of reading.opened) {
      const owner = this.#ownerOf.get(action.callId)
      if (owner !== undefined && (owner.session_id !== reading.sessionId || owner.turn_id !== action.turnId))
        this.onTwin(action.callId, reading.sessionId)
      this.#addAction.run(
        action.callId,
        reading.sessionId,
        action.type,
        writeJson(action.raw),
        action.createdAt,
        reading.at,
      )
    }
    for (const callId of reading.resolved) this.#resolve.run(reading.at, callId)
    return { defers: row?.defers !== 0 }
  }

  #writeTurn({ turn, final, settled, finalFact, endedFrameAt, finalFor }: KnownTurn): void {
    this.#putTurn.run(
      turn.id,
      turn.sessionId,
      turn.createdAt,
      writeJson(turn.raw),
      final ? 1 : 0,
      settled ? 1 : 0,
      finalFact ? 1 : 0,
      endedFrameAt,
      finalFor === null ? null : Math.round(this.#clock.steady() - finalFor),
    )
  }

  /** Stores when the stream's turn.ended frame came: the final fact of a turn waits for that frame. */
  endTurn({ turnId, sessionId, seq, at }: Fact): void {
    if (seq !== null && turnId !== null && sessionId !== null) this.#endTurn.run(turnId, sessionId, at)
  }

  /** The session left the scope: its actions are resolved, and a read that is under way is not stored. */
  leave(id: string, at: number): void {
    this.#leave.run(at, id)
    this.#resolveAll.run(at, id)
  }

  alive(after: string, limit: number): string[] {
    return this.#alive.all(after, limit)
  }

  active(after: string, limit: number): string[] {
    return this.#active.all(after, limit)
  }

  count(): { alive: number; active: number } {
    return { alive: this.#countAlive.get() ?? 0, active: this.#countActive.get() ?? 0 }
  }
}

export function glanceOf(row: GlanceRow): SessionGlance {
  return {
    status: row.status,
    updatedAt: row.updated_at,
    deleted: row.deleted_at !== null,
    atRest: row.at_rest === 1,
  }
}

export function sessionOf(row: Pick<SessionRow, 'id' | 'raw'>): Session {
  const session = parseSession(objectOf(row.raw))
  if (session === null) throw new Error(`session ${row.id}: the stored resource cannot be read`)
  return session
}

/** What is stored of a session after a read; null: nothing. `before`: what was stored. */
export function rowAfter(
  { session, atRest, baseline, at }: Reading,
  before: SessionRow | undefined,
): Omit<SessionRow, 'revision'> | null {
  if (session === null)
    return before === undefined ? null : { ...before, at_rest: 1, read_at: at, deleted_at: at }
  return {
    id: session.id,
    status: session.status,
    updated_at: session.updatedAt,
    raw: writeJson(session.raw),
    at_rest: atRest ? 1 : 0,
    baseline,
    first_seen: before?.first_seen ?? at,
    read_at: at,
    deleted_at: null,
  }
}

export function turnOf(row: TurnRow, now: number): KnownTurn {
  const parsed = row.raw === null ? null : parseTurn(objectOf(row.raw))
  return {
    turn: parsed ?? {
      id: row.id,
      sessionId: row.session_id,
      status: 'working',
      createdAt: row.created_at,
      startedAt: null,
      completedAt: null,
      artifacts: null,
      raw: {},
    },
    read: parsed !== null,
    final: row.final === 1,
    settled: row.settled === 1,
    endedFrameAt: row.ended_frame_at,
    finalFor: row.final_read_at === null ? null : now - row.final_read_at,
    finalFact: row.final_fact === 1,
  }
}

export interface TurnRow {
  id: string
  session_id: string
  created_at: number | null
  raw: string | null
  final: number
  settled: number
  final_fact: number
  ended_frame_at: number | null
  final_read_at: number | null
}

/** A session, and how far its items are in the log. */
export type KnownRow = SessionRow & { last_item: string | null; items_since: string | null }

/** What a sweep compares. */
export type GlanceRow = Pick<SessionRow, 'status' | 'updated_at' | 'at_rest' | 'deleted_at'>

export interface SessionRow {
  id: string
  status: string
  updated_at: number
  raw: string
  at_rest: number
  revision: number
  baseline: number
  first_seen: number
  read_at: number
  deleted_at: number | null
}
