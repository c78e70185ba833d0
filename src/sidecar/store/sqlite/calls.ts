import { newCall, type Call, type CallResult, type CallRoom, type ClaimedCall } from '../../../core/call.ts'
import { transition, type CallStep } from '../../../core/call-machine.ts'
import type { Lease } from '../../../core/lease.ts'
import type { Sqlite } from './open.ts'
import type { Ownership } from './committer.ts'
import { objectOf } from '../../../std/depth.ts'
import { writeJson } from '../../../std/json.ts'

const NO_CALL = newCall({
  callId: '',
  sessionId: '',
  turnId: null,
  name: '',
  action: {},
  createdAt: null,
  expiresAt: null,
  receivedAt: 0,
})
/** The names of a `CallRow`. */
export const FIELDS = Object.keys(callRow(NO_CALL)) as (keyof CallRow)[]
/** The fields that no step changes. */
const FIXED = new Set([
  'callId',
  'sessionId',
  'turnId',
  'name',
  'action',
  'createdAt',
  'expiresAt',
  'receivedAt',
])
export const columnOf = (field: string): string =>
  field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
/** The columns of a `CallRow`. */
export const CALL = FIELDS.map((field) => `${columnOf(field)} AS "${field}"`).join(', ')

export interface Due {
  call_id: string
  due_at: number
}

/** The ledger of function calls. A step is refused unless the call is in the state that the caller expects. */
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

  constructor(db: Sqlite, ownership: Ownership) {
    this.#ownership = ownership
    this.#insert = db.prepare<CallRow & { dueAt: number }>(
      `INSERT INTO calls (${FIELDS.map(columnOf).join(', ')}, due_at)
       VALUES (${FIELDS.map((field) => `@${field}`).join(', ')}, @dueAt) ON CONFLICT DO NOTHING`,
    )
    this.#update = db.prepare<CallRow & { dueAt: number | null }>(
      `UPDATE calls SET ${FIELDS.filter((field) => !FIXED.has(field))
        .map((field) => `${columnOf(field)} = @${field}`)
        .join(', ')},
         due_at = coalesce(@dueAt, due_at) WHERE call_id = @callId`,
    )
    this.#get = db.prepare<[string], CallRow>(`SELECT ${CALL} FROM calls WHERE call_id = ?`)
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
      `SELECT ${CALL} FROM calls WHERE ${waiting} AND name = +? AND due_at <= ? ORDER BY due_at LIMIT +?`,
    )
    this.#moving = db.prepare<[number, number], CallRow>(
      `SELECT ${CALL} FROM calls WHERE ${moving} AND due_at <= ? ORDER BY due_at LIMIT +?`,
    )
    this.#nextWaiting = db.prepare<[string, number], Due>(
      `SELECT call_id, due_at FROM calls WHERE ${waiting} AND name = +? ORDER BY due_at LIMIT +?`,
    )
    this.#nextMoving = db.prepare<[number], Due>(
      `SELECT call_id, due_at FROM calls WHERE ${moving} ORDER BY due_at LIMIT +?`,
    )
    this.#wake = db.prepare<[string, string]>(
      `UPDATE calls SET due_at = 0 WHERE session_id = ? AND deferred = 1 AND ended_at IS NULL
         AND call_id NOT IN (SELECT value FROM json_each(?))`,
    )
  }

  /** @returns false when the call is known already. */
  add(call: Call, now: number): boolean {
    return this.#insert.run({ ...callRow(call), dueAt: Math.floor(now) }).changes === 1
  }

  step({ callId, event, after, lease }: CallStep, now: number): boolean {
    if (lease !== undefined && !this.#ownership.holds(lease)) return false
    const row = this.#get.get(callId)
    if (row === undefined) return false
    // The action may be long, and is neither parsed nor written again.
    const stepped = transition(callOf({ ...row, action: '{}' }), event)
    if (stepped === null) return false
    this.#update.run({ ...callRow(stepped), dueAt: after === undefined ? null : Math.ceil(now + after) })
    return true
  }

  /**
   * Makes the calls due that wait for the app and that the session no longer requires (`required`), so that the tool
   * host closes them. This finds them also after a restart, and when an action came and went between two reads.
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
    const rows = find(room + this.#claimed.size).filter(({ callId }) => !this.#claimed.has(callId))
    return rows.slice(0, room).map((row) => {
      this.#claimed.add(row.callId)
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

/** A row, with the names of a call. */
export interface CallRow extends Omit<Call, 'action' | 'result' | 'uncertain' | 'deferred' | 'unsure'> {
  action: string
  resultKind: CallResult['kind'] | null
  resultText: string | null
  uncertain: number
  deferred: number
  unsure: number
}

export function callOf({ resultKind, resultText, ...row }: CallRow): Call {
  return {
    ...row,
    action: objectOf(row.action),
    result: resultKind === null ? null : { kind: resultKind, text: resultText ?? '' },
    uncertain: row.uncertain === 1,
    deferred: row.deferred === 1,
    unsure: row.unsure === 1,
  }
}

export function callRow({ result, ...call }: Call): CallRow {
  return {
    ...call,
    action: writeJson(call.action),
    resultKind: result?.kind ?? null,
    resultText: result?.text ?? null,
    uncertain: call.uncertain ? 1 : 0,
    deferred: call.deferred ? 1 : 0,
    unsure: call.unsure ? 1 : 0,
  }
}
