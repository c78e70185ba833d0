import { newCall, type Call, type CallRoom, type CallState, type ClaimedCall } from '../../../core/call.ts'
import { transition, type CallStep } from '../../../core/call-machine.ts'
import type { Lease } from '../../../core/lease.ts'
import type { Action } from '../../../core/resource.ts'
import { parseAction } from '../../../core/wire.ts'
import type { Sqlite } from './open.ts'
import type { Ownership } from './owner.ts'
import { objectOf } from '../../../std/depth.ts'
import { writeJson } from '../../../std/json.ts'

/** The columns, in the order of a row. */
const COLUMNS = Object.keys(
  callRow(
    newCall({
      callId: '',
      sessionId: '',
      turnId: null,
      name: '',
      action: {},
      createdAt: null,
      expiresAt: null,
      receivedAt: 0,
    }),
    0,
  ),
) as (keyof CallRow)[]

interface Due {
  call_id: string
  due_at: number
}

/** The ledger of function calls. A step is refused unless the call stands where the caller believes. */
export class Calls {
  readonly #claimed = new Set<string>()
  readonly #ownership: Ownership
  readonly #insert
  readonly #update
  readonly #get
  readonly #names
  readonly #waiting
  readonly #moving
  readonly #nextWaiting
  readonly #nextMoving
  readonly #wake
  readonly #unreported

  constructor(db: Sqlite, ownership: Ownership) {
    this.#ownership = ownership
    this.#insert = db.prepare<CallRow>(
      `INSERT INTO calls (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((name) => `@${name}`).join(', ')})
       ON CONFLICT DO NOTHING`,
    )
    this.#update = db.prepare<CallRow>(
      `UPDATE calls SET ${COLUMNS.map((name) => `${name} = @${name}`).join(', ')} WHERE call_id = @call_id`,
    )
    this.#get = db.prepare<[string], CallRow>('SELECT * FROM calls WHERE call_id = ?')
    const waiting = "ended_at IS NULL AND state = 'received'"
    const moving = "ended_at IS NULL AND state <> 'received'"
    this.#names = db
      .prepare<[], string>(
        `WITH RECURSIVE names(name) AS (
           SELECT min(name) FROM calls WHERE ${waiting}
           UNION ALL
           SELECT (SELECT min(name) FROM calls WHERE ${waiting} AND name > names.name) FROM names
           WHERE names.name IS NOT NULL
         ) SELECT name FROM names WHERE name IS NOT NULL`,
      )
      .pluck()
    this.#waiting = db.prepare<[string, number, number], CallRow>(
      `SELECT * FROM calls WHERE ${waiting} AND name = +? AND due_at <= ? ORDER BY due_at LIMIT +?`,
    )
    this.#moving = db.prepare<[number, number], CallRow>(
      `SELECT * FROM calls WHERE ${moving} AND due_at <= ? ORDER BY due_at LIMIT +?`,
    )
    this.#nextWaiting = db.prepare<[string, number], Due>(
      `SELECT call_id, due_at FROM calls WHERE ${waiting} AND name = +? ORDER BY due_at LIMIT +?`,
    )
    this.#nextMoving = db.prepare<[number], Due>(
      `SELECT call_id, due_at FROM calls WHERE ${moving} ORDER BY due_at LIMIT +?`,
    )
    this.#unreported = db
      .prepare<[string], string>(
        `SELECT action FROM calls WHERE session_id = ?
           AND NOT EXISTS (SELECT 1 FROM actions WHERE actions.call_id = calls.call_id)`,
      )
      .pluck()
    this.#wake = db.prepare<[string, string]>(
      `UPDATE calls SET due_at = 0 WHERE session_id = ? AND deferred = 1 AND ended_at IS NULL
         AND call_id NOT IN (SELECT value FROM json_each(?))`,
    )
  }

  unreported(sessionId: string): Action[] {
    return this.#unreported.all(sessionId).flatMap((action) => parseAction(objectOf(action)) ?? [])
  }

  /** @returns false when the call is known already. */
  add(call: Call, now: number): boolean {
    return this.#insert.run(callRow(call, Math.floor(now))).changes === 1
  }

  step({ callId, event, after, lease }: CallStep, now: number): boolean {
    if (lease !== undefined && !this.#ownership.holds(lease)) return false
    const row = this.#get.get(callId)
    if (row === undefined) return false
    const stepped = transition(callOf(row), event)
    if (stepped === null) return false
    this.#update.run(callRow(stepped, after === undefined ? row.due_at : Math.ceil(now + after)))
    return true
  }

  /**
   * A call that waits for the app and is not among the actions that the session still requires is due, also after a
   * restart, and when its action came and went without having been stored.
   */
  wakeOthers(sessionId: string, required: readonly string[]): void {
    this.#wake.run(sessionId, JSON.stringify(required))
  }

  get(callId: string): Call | null {
    const row = this.#get.get(callId)
    return row === undefined ? null : callOf(row)
  }

  claim(room: CallRoom, now: number): ClaimedCall[] {
    const calls = this.#take(room.others, (limit) => this.#moving.all(now, limit))
    for (const name of this.#names.all()) {
      calls.push(...this.#take(room.of(name), (limit) => this.#waiting.all(name, now, limit)))
    }
    return calls
  }

  #take(room: number, find: (limit: number) => CallRow[]): ClaimedCall[] {
    if (room <= 0) return []
    const rows = find(room + this.#claimed.size).filter(({ call_id: id }) => !this.#claimed.has(id))
    return rows.slice(0, room).map((row) => {
      this.#claimed.add(row.call_id)
      return { call: callOf(row), lease: this.#ownership.lease }
    })
  }

  /** The tool host that wrote a call as running works on it already. */
  claimed(callId: string): void {
    this.#claimed.add(callId)
  }

  release(callId: string, lease: Lease): void {
    if (this.#ownership.holds(lease)) this.#claimed.delete(callId)
  }

  next(room: CallRoom): number | null {
    const limit = this.#claimed.size + 1
    const rows = room.others > 0 ? [this.#nextMoving.all(limit)] : []
    for (const name of this.#names.all()) if (room.of(name) > 0) rows.push(this.#nextWaiting.all(name, limit))
    const due = rows.flatMap((each) => each.find(({ call_id: id }) => !this.#claimed.has(id))?.due_at ?? [])
    return due.length === 0 ? null : Math.min(...due)
  }
}

export interface CallRow {
  call_id: string
  session_id: string
  turn_id: string | null
  name: string
  state: CallState
  action: string
  attempts: number
  uncertain: number
  deferred: number
  result_kind: 'output' | 'error' | null
  result_text: string | null
  posts: number
  unsure: number
  outcome: string | null
  error: string | null
  created_at: number | null
  expires_at: number | null
  received_at: number
  started_at: number | null
  finished_at: number | null
  ended_at: number | null
  due_at: number
}

export function callOf(row: CallRow): Call {
  return {
    callId: row.call_id,
    sessionId: row.session_id,
    turnId: row.turn_id,
    name: row.name,
    state: row.state,
    action: objectOf(row.action),
    attempts: row.attempts,
    uncertain: row.uncertain === 1,
    deferred: row.deferred === 1,
    result: row.result_kind === null ? null : { kind: row.result_kind, text: row.result_text ?? '' },
    posts: row.posts,
    unsure: row.unsure === 1,
    outcome: row.outcome,
    error: row.error,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    receivedAt: row.received_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    endedAt: row.ended_at,
  }
}

function callRow(call: Call, dueAt: number): CallRow {
  return {
    call_id: call.callId,
    session_id: call.sessionId,
    turn_id: call.turnId,
    name: call.name,
    state: call.state,
    action: writeJson(call.action),
    attempts: call.attempts,
    uncertain: call.uncertain ? 1 : 0,
    deferred: call.deferred ? 1 : 0,
    result_kind: call.result?.kind ?? null,
    result_text: call.result?.text ?? null,
    posts: call.posts,
    unsure: call.unsure ? 1 : 0,
    outcome: call.outcome,
    error: call.error,
    created_at: call.createdAt,
    expires_at: call.expiresAt,
    received_at: call.receivedAt,
    started_at: call.startedAt,
    finished_at: call.finishedAt,
    ended_at: call.endedAt,
    due_at: dueAt,
  }
}
