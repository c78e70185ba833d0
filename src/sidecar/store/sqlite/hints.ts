import type { Hint, HintScope } from '../../../core/hint.ts'
import type { ClaimedHint, HintClaim, HintedSession, Reading } from '../../../core/store.ts'
import type { Sqlite } from './open.ts'
import type { Ownership } from './committer.ts'
import { seenOf, type SeenColumns } from './log.ts'

export interface HintRow extends SeenColumns {
  session_id: string
  generation: number
  scope: number
  failures: number
}

/** Bits, so that one statement can join two scopes. */
export const SCOPES: Record<HintScope, number> = { session: 1, artifacts: 2, turns: 3 }

export function scopeOf(bits: number): HintScope {
  if (bits === SCOPES.session) return 'session'
  return bits === SCOPES.artifacts ? 'artifacts' : 'turns'
}

/** Delay of the read of a session whose frames are held, milliseconds: frames that arrive together cause one read. */
export const HELD_DELAY = 30

const NONE: ReadonlySet<string> = new Set()

/** The key of the hint that requests a sweep: it has no session. */
export const SWEEP = ''

/** The hints of one key since it was claimed, joined like a row of their own. */
export interface Since extends SeenColumns {
  due_at: number
  scope: number
}

export function join(first: Since, then: Since): void {
  first.due_at = Math.min(first.due_at, then.due_at)
  first.scope |= then.scope
  first.seen_stream ??= then.seen_stream
  first.seen_webhook ??= then.seen_webhook
  first.seen_poll ??= then.seen_poll
}

/**
 * Joins the hints of one commit about one session into one row: a thousand webhooks come from few sessions. The rows
 * are by session.
 */
export function gather(hints: readonly Hint[], now: number): Map<string, Since> {
  const rows = new Map<string, Since>()
  for (const { sessionId, scope, channel, at, delay } of hints) {
    const key = sessionId ?? SWEEP
    const row = {
      // Rounded down: what is due now is due within this millisecond.
      due_at: Math.floor(now + delay),
      scope: SCOPES[scope],
      seen_stream: channel === 'stream' ? at : null,
      seen_webhook: channel === 'webhook' ? at : null,
      seen_poll: channel === 'poll' ? at : null,
    }
    const before = rows.get(key)
    if (before === undefined) rows.set(key, row)
    else join(before, row)
  }
  return rows
}

/** The keyed work queue of sessions to read: one row for each session, for any number of hints. Claims live in memory. */
export class Hints {
  readonly #claimed = new Map<string, Since | null>()
  readonly #add
  readonly #due
  readonly #next
  readonly #clear
  readonly #again
  readonly #release
  readonly #defer
  readonly #restart
  readonly #ensure
  readonly #drop
  readonly #ownership: Ownership
  #generation: number

  /** `generation` must be above every one that an earlier process gave. */
  constructor(db: Sqlite, ownership: Ownership, generation: number) {
    this.#ownership = ownership
    this.#generation = generation
    this.#add = db.prepare<[string, number, number, number, number | null, number | null, number | null]>(
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
    this.#defer = db.prepare<[number, string]>('UPDATE hints SET due_at = ? WHERE session_id = ?')
    this.#ensure = db.prepare<[string, number, number, number, number]>(
      `INSERT INTO hints (session_id, generation, due_at, scope, seen_stream, failures) VALUES (?, ?, ?, ?, ?, 0)
       ON CONFLICT (session_id) DO NOTHING`,
    )
    this.#drop = db.prepare<[string]>('DELETE FROM hints WHERE session_id = ?')
    this.#restart = db.prepare<[Since & { session_id: string }]>(
      `UPDATE hints SET due_at = @due_at, scope = @scope, failures = 0,
         seen_stream = @seen_stream, seen_webhook = @seen_webhook, seen_poll = @seen_poll
       WHERE session_id = @session_id`,
    )
  }

  add(hints: readonly Hint[], now: number): void {
    for (const [key, row] of gather(hints, now)) {
      const { due_at, scope, seen_stream, seen_webhook, seen_poll } = row
      this.#add.run(key, ++this.#generation, due_at, scope, seen_stream, seen_webhook, seen_poll)
      const since = this.#claimed.get(key)
      if (since === null) this.#claimed.set(key, row)
      else if (since !== undefined) join(since, row)
    }
  }

  /** `except`: sessions whose hints are left out. */
  claim(limit: number, now: number, except: ReadonlySet<string> = NONE): HintedSession[] {
    const dirty: HintedSession[] = []
    // The first rows may be left out, so the query asks for that many rows more.
    for (const row of this.#due.all(now, limit + this.#claimed.size + except.size)) {
      if (dirty.length === limit) break
      if (this.#claimed.has(row.session_id) || except.has(row.session_id)) continue
      this.#claimed.set(row.session_id, null)
      dirty.push({
        sessionId: row.session_id === SWEEP ? null : row.session_id,
        claim: { lease: this.#ownership.lease, generation: row.generation },
        elsewhere: false,
        scope: scopeOf(row.scope),
        seen: seenOf(row),
        failures: row.failures,
      })
    }
    return dirty
  }

  next(except: ReadonlySet<string> = NONE): number | null {
    for (const row of this.#next.all(this.#claimed.size + except.size + 1)) {
      if (!this.#claimed.has(row.session_id) && !except.has(row.session_id)) return row.due_at
    }
    return null
  }

  /** Adds a hint unless the session has one. */
  ensure(sessionId: string, at: number, now: number): void {
    this.#ensure.run(sessionId, ++this.#generation, Math.floor(now + HELD_DELAY), SCOPES.session, at)
  }

  /** Removes the hint of a session that is no longer read. */
  drop(sessionId: string): void {
    this.#drop.run(sessionId)
    if (this.#claimed.has(sessionId)) this.#claimed.set(sessionId, null)
  }

  /** Called inside the transaction that stores the result of the read. */
  done(sessionId: string, { claim, lookAfter, scope }: Reading['hint'], now: number): void {
    if (claim !== null) this.#answer(sessionId, claim)
    if (lookAfter === null) return
    this.#again.run(sessionId, ++this.#generation, Math.ceil(now + lookAfter), SCOPES[scope])
  }

  /**
   * A sweep is complete. It may take longer than the time between two small sweeps: a request that came meanwhile
   * stays.
   */
  swept({ claim }: ClaimedHint): void {
    if (this.#ownership.holds(claim.lease)) this.#answer(SWEEP, claim)
  }

  /**
   * A busy session gets a hint while it is read: the hints before the claim are answered, and only the later one remains.
   * Otherwise the row would keep the oldest time and the widest scope for as long as hints come.
   */
  #answer(key: string, { generation }: HintClaim): void {
    if (this.#clear.run(key, generation).changes > 0) return
    const since = this.#claimed.get(key)
    if (since !== undefined && since !== null) this.#restart.run({ ...since, session_id: key })
  }

  /** After a read that failed: the hint is due again later. */
  postpone({ sessionId, claim }: ClaimedHint, dueAt: number): void {
    if (this.#ownership.holds(claim.lease)) this.#release.run(Math.ceil(dueAt), sessionId ?? SWEEP)
  }

  /** After a read that must be repeated: hints since its claim are due at once. */
  defer({ sessionId, claim }: ClaimedHint, dueAt: number): void {
    if (!this.#ownership.holds(claim.lease)) return
    const key = sessionId ?? SWEEP
    const since = this.#claimed.get(key)?.due_at ?? Infinity
    this.#defer.run(Math.ceil(Math.min(dueAt, since)), key)
  }

  release({ sessionId, claim }: ClaimedHint): void {
    if (this.#ownership.holds(claim.lease)) this.#claimed.delete(sessionId ?? SWEEP)
  }
}
