import type { Hint, HintScope } from '../../core/hint.ts'
import type { DirtySession } from '../../core/store.ts'
import type { Sqlite } from './open.ts'
import { seenOf, type SeenColumns } from './rows.ts'

interface HintRow extends SeenColumns {
  session_id: string
  generation: number
  scope: number
  failures: number
}

/** Bits, so that two wishes join in one statement. */
const SCOPES: Record<HintScope, number> = { session: 1, artifacts: 2, turns: 3 }

function scopeOf(bits: number): HintScope {
  if (bits === SCOPES.session) return 'session'
  return bits === SCOPES.artifacts ? 'artifacts' : 'turns'
}

/** A sweep is the hint of no session. */
const SWEEP = ''

/** The keyed work queue of dirty sessions: one row a session, however many hints. Claims live in memory. */
export class Hints {
  readonly #claimed = new Set<string>()
  /** What was asked of a sweep since it was claimed, SCOPES. */
  #since = 0
  readonly #add
  readonly #due
  readonly #next
  readonly #clear
  readonly #again
  readonly #release
  readonly #narrow
  #generation: number

  /** `generation` must be above every one that an earlier process gave. */
  constructor(db: Sqlite, generation: number) {
    this.#generation = generation
    this.#add = db.prepare(
      `INSERT INTO hints (session_id, generation, due_at, scope, seen_stream, seen_webhook, seen_poll, failures)
       VALUES (?, ?, ?, ?, ?, ?, ?, 0)
       ON CONFLICT (session_id) DO UPDATE SET
         generation = excluded.generation,
         due_at = min(due_at, excluded.due_at),
         scope = scope | excluded.scope,
         seen_stream = coalesce(seen_stream, excluded.seen_stream),
         seen_webhook = coalesce(seen_webhook, excluded.seen_webhook),
         seen_poll = coalesce(seen_poll, excluded.seen_poll)`,
    )
    this.#due = db.prepare<[number, number], HintRow>(
      `SELECT session_id, generation, scope, failures, seen_stream, seen_webhook, seen_poll
       FROM hints WHERE due_at <= ? ORDER BY due_at LIMIT +?`,
    )
    this.#next = db.prepare<[number], { session_id: string; due_at: number }>(
      'SELECT session_id, due_at FROM hints ORDER BY due_at LIMIT +?',
    )
    this.#clear = db.prepare<[string, number]>('DELETE FROM hints WHERE session_id = ? AND generation = ?')
    this.#again = db.prepare<[string, number, number, number]>(
      `INSERT INTO hints (session_id, generation, due_at, scope, failures) VALUES (?, ?, ?, ?, 0)
       ON CONFLICT (session_id) DO UPDATE SET due_at = min(due_at, excluded.due_at),
         scope = scope | excluded.scope, failures = 0`,
    )
    this.#release = db.prepare<[number, string]>(
      'UPDATE hints SET due_at = ?, failures = failures + 1 WHERE session_id = ?',
    )
    this.#narrow = db.prepare<[number, string]>('UPDATE hints SET scope = ? WHERE session_id = ?')
  }

  add(hint: Hint, now: number): void {
    if (hint.sessionId === null) this.#since |= SCOPES[hint.scope]
    this.#add.run(
      hint.sessionId ?? SWEEP,
      ++this.#generation,
      // Rounded down: what is due now is due in this very millisecond.
      Math.floor(now + hint.delay),
      SCOPES[hint.scope],
      hint.channel === 'stream' ? hint.at : null,
      hint.channel === 'webhook' ? hint.at : null,
      hint.channel === 'poll' ? hint.at : null,
    )
  }

  claim(limit: number, now: number): DirtySession[] {
    const dirty: DirtySession[] = []
    for (const row of this.#due.all(now, limit + this.#claimed.size)) {
      if (dirty.length === limit) break
      if (this.#claimed.has(row.session_id)) continue
      this.#claimed.add(row.session_id)
      if (row.session_id === SWEEP) this.#since = 0
      dirty.push({
        sessionId: row.session_id === SWEEP ? null : row.session_id,
        generation: row.generation,
        scope: scopeOf(row.scope),
        seen: seenOf(row),
        failures: row.failures,
      })
    }
    return dirty
  }

  next(): number | null {
    for (const row of this.#next.all(this.#claimed.size + 1)) {
      if (!this.#claimed.has(row.session_id)) return row.due_at
    }
    return null
  }

  /** Inside the transaction of the reading. A hint that came while it was read keeps the session dirty. */
  done(sessionId: string | null, generation: number | null, nextLook: number | null, scope: HintScope): void {
    const key = sessionId ?? SWEEP
    if (generation !== null) this.#clear.run(key, generation)
    if (nextLook !== null) this.#again.run(key, ++this.#generation, Math.ceil(nextLook), SCOPES[scope])
  }

  /**
   * A sweep is through. What was asked for since is all that the next one does: a look at the whole list may take longer
   * than the time between two small ones.
   */
  swept(generation: number): void {
    if (this.#clear.run(SWEEP, generation).changes === 0 && this.#since > 0)
      this.#narrow.run(this.#since, SWEEP)
  }

  /** After a reading that failed: it is due again later. */
  postpone(sessionId: string | null, dueAt: number): void {
    this.#release.run(Math.ceil(dueAt), sessionId ?? SWEEP)
  }

  unclaim(sessionId: string | null): void {
    this.#claimed.delete(sessionId ?? SWEEP)
  }
}
