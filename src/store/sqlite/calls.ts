import { newCall, type Call, type CallStep } from '../../core/call.ts'
import type { Sqlite } from './open.ts'
import { callOf, callRow, type CallRow } from './rows.ts'

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
      dueAt: 0,
    }),
  ),
) as (keyof CallRow)[]

/** The ledger of function calls. A step is refused unless the call stands where the caller believes. */
export class Calls {
  readonly #claimed = new Set<string>()
  readonly #insert
  readonly #update
  readonly #get
  readonly #due
  readonly #next
  readonly #openOf
  readonly #wake

  constructor(db: Sqlite) {
    this.#insert = db.prepare<CallRow>(
      `INSERT INTO calls (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((name) => `@${name}`).join(', ')})
       ON CONFLICT DO NOTHING`,
    )
    this.#update = db.prepare<CallRow>(
      `UPDATE calls SET ${COLUMNS.map((name) => `${name} = @${name}`).join(', ')} WHERE call_id = @call_id`,
    )
    this.#get = db.prepare<[string], CallRow>('SELECT * FROM calls WHERE call_id = ?')
    this.#due = db.prepare<[number, number], CallRow>(
      'SELECT * FROM calls WHERE ended_at IS NULL AND due_at <= ? ORDER BY due_at LIMIT +?',
    )
    this.#next = db.prepare<[number], { call_id: string; due_at: number }>(
      'SELECT call_id, due_at FROM calls WHERE ended_at IS NULL ORDER BY due_at LIMIT +?',
    )
    this.#openOf = db.prepare<[string], CallRow>(
      'SELECT * FROM calls WHERE session_id = ? AND ended_at IS NULL',
    )
    this.#wake = db.prepare<[string, string]>(
      `UPDATE calls SET due_at = 0 WHERE session_id = ? AND deferred = 1 AND ended_at IS NULL
         AND call_id NOT IN (SELECT value FROM json_each(?))`,
    )
  }

  /** @returns false when the call is known already. */
  add(call: Call): boolean {
    return this.#insert.run(callRow(call)).changes === 1
  }

  step({ callId, from, set }: CallStep): boolean {
    const row = this.#get.get(callId)
    if (row === undefined || !from.includes(row.state)) return false
    this.#update.run(callRow({ ...callOf(row), ...set }))
    return true
  }

  /**
   * Whoever waits for the app and is not among the actions that the session still requires is due, also when nobody lives
   * to be told, and when its action came and went without having been written down.
   */
  wakeOthers(sessionId: string, required: readonly string[]): void {
    this.#wake.run(sessionId, JSON.stringify(required))
  }

  get(callId: string): Call | null {
    const row = this.#get.get(callId)
    return row === undefined ? null : callOf(row)
  }

  openOf(sessionId: string): Call[] {
    return this.#openOf.all(sessionId).map(callOf)
  }

  claim(limit: number, now: number): Call[] {
    const calls: Call[] = []
    for (const row of this.#due.all(now, limit + this.#claimed.size)) {
      if (calls.length === limit) break
      if (this.#claimed.has(row.call_id)) continue
      this.#claimed.add(row.call_id)
      calls.push(callOf(row))
    }
    return calls
  }

  /** Whoever wrote a call as running works on it already. */
  claimed(callId: string): void {
    this.#claimed.add(callId)
  }

  release(callId: string): void {
    this.#claimed.delete(callId)
  }

  next(): number | null {
    for (const row of this.#next.all(this.#claimed.size + 1)) {
      if (!this.#claimed.has(row.call_id)) return row.due_at
    }
    return null
  }
}
