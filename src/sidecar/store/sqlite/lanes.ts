import type { Lane, PendingDelivery, Ack } from '../../../core/delivery.ts'
import type { StoredFact } from '../../../core/fact.ts'
import { compilePatterns } from '../../../core/pattern.ts'
import type { Committed, HandlerRegistration } from '../../../core/store.ts'
import type { HandlerRecord } from '../../../core/store-reader.ts'
import type { Sqlite } from './open.ts'
import { attemptText, CUT, LONG, STATUS } from '../attempt.ts'
import { FACT_COLUMNS, factOf, type FactRow } from './log.ts'
import type { Clock, Timer } from '../../../std/ports.ts'
import type { Part } from './committer.ts'
import type { Ownership } from './owner.ts'

/** The service defines the types, so the number of types in memory is limited. */
export const TYPES_REMEMBERED = 1000

export interface Registered extends Pick<HandlerRegistration, 'name' | 'ordered'> {
  number: number
  wants(type: string): boolean
}

/**
 * Deliveries in lanes. A worker claims a lane before it delivers from it. One process owns the database (open.ts), so
 * claims live in memory and a crash frees them.
 */
export class Lanes {
  readonly #claimed = new Set<number>()
  readonly #byType = new Map<string, Registered[]>()
  #handlers: Registered[] = []
  #numbers: ReadonlyMap<string, number> = new Map()
  readonly #db: Sqlite
  readonly #addDeliveries
  readonly #growLane
  readonly #shrinkLane
  readonly #dropLane
  readonly #postpone
  readonly #record
  readonly #due
  readonly #next
  readonly #pending
  readonly #listHandlers
  readonly #begun: BegunAttempts
  readonly onDamage: (pos: number) => void
  readonly #ownership: Ownership

  constructor(db: Sqlite, ownership: Ownership, begun: BegunAttempts, onDamage: (pos: number) => void) {
    this.#db = db
    this.#ownership = ownership
    this.#begun = begun
    this.onDamage = onDamage
    this.#addDeliveries = db.prepare<[number, string]>(
      `INSERT INTO deliveries (fact_pos, handler, lane, status, attempts, log)
       SELECT CAST(key AS INTEGER), ?, value, 0, 0, '' FROM json_each(?)`,
    )
    this.#growLane = db.prepare<[number, string, number], { id: number; pending: number }>(
      `INSERT INTO lanes (handler, key, pending, due_at) VALUES (?, ?, ?, 0)
       ON CONFLICT (handler, key) DO UPDATE SET pending = pending + excluded.pending,
         due_at = CASE WHEN pending = 0 THEN 0 ELSE due_at END
       RETURNING id, pending`,
    )
    this.#shrinkLane = db.prepare<[number, number]>('UPDATE lanes SET pending = pending - ? WHERE id = ?')
    this.#dropLane = db.prepare<[number]>('DELETE FROM lanes WHERE id = ? AND pending = 0')
    this.#postpone = db.prepare<[number, number]>('UPDATE lanes SET due_at = ? WHERE id = ?')
    this.#record = db.prepare<[number, number, string, string | null, number, number]>(
      `UPDATE deliveries SET status = ?, attempts = ?, log = iif(log = '', '', log || ',') || ?,
         answer = coalesce(?, answer)
       WHERE fact_pos = ? AND handler = ? AND status = 0`,
    )
    this.#due = db.prepare<[number, number, number], { id: number; key: string }>(
      'SELECT id, key FROM lanes WHERE handler = +? AND pending > 0 AND due_at <= ? ORDER BY due_at LIMIT +?',
    )
    this.#next = db.prepare<[number, number], { id: number; due_at: number }>(
      'SELECT id, due_at FROM lanes WHERE handler = +? AND pending > 0 ORDER BY due_at LIMIT +?',
    )
    this.#pending = db.prepare<[number, number, number], FactRow & { attempts: number; cut: number }>(
      `SELECT d.attempts, d.cut, ${FACT_COLUMNS} FROM deliveries d JOIN facts f ON f.pos = d.fact_pos
       WHERE d.lane = +? AND d.status = 0 AND d.fact_pos > ? ORDER BY d.fact_pos LIMIT +?`,
    )
    this.#listHandlers = db.prepare<[], HandlerRecord>(
      'SELECT number, name, paused_at AS pausedAt, pause_reason AS pauseReason FROM handlers ORDER BY number',
    )
  }

  handlers(): HandlerRecord[] {
    return this.#listHandlers.all()
  }

  register(handlers: readonly HandlerRegistration[]): HandlerRecord[] {
    const insert = this.#db.prepare<[string]>('INSERT INTO handlers (name) VALUES (?) ON CONFLICT DO NOTHING')
    for (const { name } of handlers) insert.run(name)
    const known = new Map(this.handlers().map((record) => [record.name, record]))
    this.#byType.clear()
    this.#handlers = handlers.map(({ name, ordered, events }) => ({
      name,
      ordered,
      wants: compilePatterns(events).wants,
      number: known.get(name)?.number ?? 0,
    }))
    this.#numbers = new Map(this.#handlers.map(({ name, number }) => [name, number]))
    for (const { number, ordered } of this.#handlers) if (ordered) gatherLanes(this.#db, number)
    return this.#handlers.flatMap(({ name }) => known.get(name) ?? [])
  }

  /** null: no handler of that name is configured. */
  registered(name: string): Readonly<Registered> | null {
    return this.#handlers.find((handler) => handler.name === name) ?? null
  }

  numberOf(name: string): number | null {
    return this.#numbers.get(name) ?? null
  }

  /** One statement writes the deliveries of a handler, and one updates each lane, however many facts they get. */
  fanOut(facts: readonly StoredFact[], into: Committed): void {
    for (const [number, handler, byKey] of this.#sort(facts)) {
      const rows: string[] = []
      for (const [key, mine] of byKey) {
        const lane = this.#extend(number, handler, key, mine, into)
        for (const { pos } of mine) rows.push(`"${pos}":${lane}`)
      }
      this.#addDeliveries.run(number, `{${rows.join()}}`)
    }
  }

  #sort(facts: readonly StoredFact[]): Iterable<[number, string, Map<string, StoredFact[]>]> {
    const sorted = new Map<number, [number, string, Map<string, StoredFact[]>]>()
    for (const fact of facts) {
      for (const handler of this.#interested(fact.type)) {
        let entry = sorted.get(handler.number)
        if (entry === undefined)
          sorted.set(handler.number, (entry = [handler.number, handler.name, new Map()]))
        const key = handler.ordered ? (fact.sessionId ?? '') : fact.id
        const list = entry[2].get(key)
        if (list === undefined) entry[2].set(key, [fact])
        else list.push(fact)
      }
    }
    return sorted.values()
  }

  /** @returns the number of the lane. */
  #extend(
    number: number,
    handler: string,
    key: string,
    facts: readonly StoredFact[],
    into: Committed,
  ): number {
    const row = this.#growLane.get(number, key, facts.length)
    if (row === undefined) throw new Error('the lane was not written')
    into.lanes.push({
      lane: { id: row.id, handler, key, lease: this.#ownership.lease },
      claimed: row.pending === facts.length && !this.#claimed.has(row.id),
      deliveries: facts.map((fact) => ({ attempts: 0, cut: 0, fact })),
    })
    return row.id
  }

  #interested(type: string): readonly Registered[] {
    let list = this.#byType.get(type)
    if (list === undefined) {
      list = this.#handlers.filter((handler) => handler.wants(type))
      if (this.#byType.size >= TYPES_REMEMBERED) this.#byType.clear()
      this.#byType.set(type, list)
    }
    return list
  }

  /** Claims the lanes of a commit; called when the commit is durable. */
  claimFresh(committed: Committed): void {
    for (const extension of committed.lanes) {
      if (!extension.claimed) continue
      // Two commits shared a transaction: the claim of the first one holds.
      if (this.#claimed.has(extension.lane.id)) extension.claimed = false
      else this.#claimed.add(extension.lane.id)
    }
  }

  claim(handler: string, limit: number, now: number): Lane[] {
    const number = this.numberOf(handler)
    if (number === null) return []
    const lanes: Lane[] = []
    // The first rows may be claimed lanes, so the query asks for that many rows more.
    for (const row of this.#due.all(number, now, limit + this.#claimed.size)) {
      if (lanes.length === limit) break
      if (this.#claimed.has(row.id)) continue
      this.#claimed.add(row.id)
      lanes.push({ id: row.id, handler, key: row.key, lease: this.#ownership.lease })
    }
    return lanes
  }

  next(handler: string): number | null {
    const number = this.numberOf(handler)
    if (number === null) return null
    for (const row of this.#next.all(number, this.#claimed.size + 1)) {
      if (!this.#claimed.has(row.id)) return row.due_at
    }
    return null
  }

  release({ id, lease }: Lane): void {
    if (!this.#ownership.holds(lease)) return
    this.#claimed.delete(id)
    this.#begun.release(id)
  }

  isClaimed(id: number): boolean {
    return this.#claimed.has(id)
  }

  postpone({ id, lease }: Lane, dueAt: number): void {
    if (this.#ownership.holds(lease)) this.#postpone.run(Math.ceil(dueAt), id)
  }

  read(lane: Lane, after: number, limit: number, maxBytes: number): PendingDelivery[] {
    const found: PendingDelivery[] = []
    let bytes = 0
    for (const row of this.#pending.iterate(lane.id, after, limit)) {
      bytes += row.body.length
      if (found.length > 0 && bytes > maxBytes) break
      const fact = factOf(row)
      if (fact === null) {
        this.onDamage(row.pos)
        continue
      }
      found.push({ attempts: row.attempts, cut: row.cut, fact })
    }
    return found
  }

  begin(lane: Lane, positions: readonly number[]): void {
    const number = this.numberOf(lane.handler)
    if (number !== null && this.#ownership.holds(lane.lease)) this.#begun.begin(lane, number, positions)
  }

  /** Forgets an attempt whose outcome is not stored. */
  drop(lane: Lane, positions: readonly number[]): void {
    const number = this.numberOf(lane.handler)
    if (number !== null && this.#ownership.holds(lane.lease)) this.#begun.drop(lane, number, positions)
  }

  /** After the transaction of `acknowledge`. */
  acknowledged(acks: readonly Ack[]): void {
    for (const { lane, pos } of acks) {
      const number = this.numberOf(lane.handler)
      if (number !== null) this.#begun.ended(number, pos)
    }
  }

  acknowledge(acks: readonly Ack[], now: number): void {
    const done = new Map<number, { handler: number; count: number }>()
    for (const { lane, pos, result, attempts, attempt, after } of acks) {
      const number = this.numberOf(lane.handler)
      if (number === null || !this.#ownership.holds(lane.lease)) continue
      this.#begun.store(lane, number, pos)
      const status = STATUS[result]
      const answer = attempt.answer ?? null
      const { changes } = this.#record.run(status, attempts, attemptText(attempt), answer, pos, number)
      if (result === 'retry') {
        if (after !== null) this.#postpone.run(Math.ceil(now + after), lane.id)
        continue
      }
      if (changes !== 1) continue
      const entryOfLane = done.get(lane.id)
      if (entryOfLane === undefined) done.set(lane.id, { handler: number, count: 1 })
      else entryOfLane.count++
    }
    for (const [id, { handler, count }] of done) {
      this.#shrinkLane.run(count, id)
      if (!this.isOrdered(handler)) this.#dropLane.run(id)
    }
  }

  /** `number`: the handler's. A handler that is no longer configured counts as ordered. */
  isOrdered(number: number): boolean {
    return this.#handlers.find((handler) => handler.number === number)?.ordered ?? true
  }
}

/** Runs a transaction that need not reach the disk; `effect` runs after it. */
type Write = (run: () => void, effect?: () => void) => Promise<unknown>

/** An attempt that a lane has begun. */
interface Begun {
  handler: number
  positions: readonly number[]
  /** Our wall clock. */
  at: number
  /** Steady milliseconds; Infinity: it has ended or is written. */
  since: number
}

/**
 * A handler gets three POSTs of one fact, and the sidecar is killed during the first two: both must show as attempts.
 * So an attempt that takes long is recorded as begun, by the next commit or by a relaxed one of its own. An attempt
 * that ends earlier costs nothing.
 */
export class BegunAttempts {
  readonly #clock: Clock
  readonly #add
  readonly #remove
  readonly #write: Write
  /**
   * The last attempt of each lane. A lane uses its entry for all attempts: a map whose entries come and go leaves old tables
   * behind, and V8 keeps alive what they refer to.
   */
  readonly #unwritten = new Map<number, Begun>()
  readonly #written = new Set<string>()
  #staged: Begun[] = []
  #timer: Timer | null = null

  constructor(db: Sqlite, clock: Clock, write: Write) {
    this.#clock = clock
    this.#write = write
    this.#add = db.prepare<[number, number, number]>('INSERT OR IGNORE INTO begun VALUES (?, ?, ?)')
    this.#remove = db.prepare<[number, number]>('DELETE FROM begun WHERE fact_pos = ? AND handler = ?')
  }

  begin(lane: Lane, handler: number, positions: readonly number[]): void {
    const since = this.#clock.steady()
    const at = this.#clock.now()
    const last = this.#unwritten.get(lane.id)
    if (last === undefined) this.#unwritten.set(lane.id, { handler, positions, at, since })
    else {
      last.positions = positions
      last.at = at
      last.since = since
    }
    this.#arm(since)
  }

  release(lane: number): void {
    this.#unwritten.delete(lane)
  }

  /** The attempt has an outcome, which is stored soon. */
  end(lane: Lane): void {
    const last = this.#unwritten.get(lane.id)
    if (last !== undefined) last.since = Infinity
  }

  /**
   * Removes the row of an attempt, inside the transaction that stores its outcome. `ended` is called after the commit.
   */
  store(lane: Lane, handler: number, pos: number): void {
    this.#forget(lane, pos)
    if (this.#written.size > 0 && this.#written.has(keyOf(handler, pos))) this.#remove.run(pos, handler)
  }

  ended(handler: number, pos: number): void {
    if (this.#written.size > 0) this.#written.delete(keyOf(handler, pos))
  }

  /** Removes the row of an attempt whose outcome is not stored. */
  drop(lane: Lane, handler: number, positions: readonly number[]): void {
    for (const pos of positions) this.#forget(lane, pos)
    if (!positions.some((pos) => this.#written.has(keyOf(handler, pos)))) return
    const remove = () => positions.forEach((pos) => this.store(lane, handler, pos))
    // A row that stays shows as an interrupted attempt after the next start.
    this.#write(remove, () => positions.forEach((pos) => this.ended(handler, pos))).catch(() => undefined)
  }

  #forget(lane: Lane, pos: number): void {
    const last = this.#unwritten.get(lane.id)
    if (last?.positions.includes(pos) === true) last.since = Infinity
  }

  /** The part of every transaction: the owner's check before the writes; `note` and begun attempts after them. */
  partWith(ownership: Ownership, note: () => void): Part {
    return {
      confirm: () => ownership.confirm(),
      note: () => {
        note()
        this.#stage()
      },
      committed: () => this.#committed(),
    }
  }

  #stage(): void {
    if (this.#staged.length > 0) this.#staged = []
    const before = this.#clock.steady() - LONG
    for (const begun of this.#unwritten.values()) {
      if (begun.since > before) continue
      for (const pos of begun.positions) this.#add.run(pos, begun.handler, begun.at)
      this.#staged.push(begun)
    }
  }

  #committed(): void {
    if (this.#staged.length === 0) return
    for (const begun of this.#staged) {
      begun.since = Infinity
      for (const pos of begun.positions) this.#written.add(keyOf(begun.handler, pos))
    }
    this.#staged = []
  }

  stop(): void {
    this.#timer?.cancel()
  }

  /** One timer for all attempts. A transaction that fails is tried again when the next attempt begins. */
  #arm(since: number): void {
    if (this.#timer !== null) return
    this.#timer = this.#clock.after(Math.max(1, since + LONG - this.#clock.steady()), () => {
      this.#timer = null
      this.#writeLong().catch(() => undefined)
    })
  }

  async #writeLong(): Promise<void> {
    if (this.#oldest() <= this.#clock.steady() - LONG) await this.#write(() => undefined)
    const next = this.#oldest()
    if (next < Infinity) this.#arm(next)
  }

  #oldest(): number {
    let oldest = Infinity
    for (const { since } of this.#unwritten.values()) oldest = Math.min(oldest, since)
    return oldest
  }
}

function keyOf(handler: number, pos: number): string {
  return `${handler}/${pos}`
}

/**
 * Records the attempts that the last process left: each shows as an interrupted attempt and counts only for the attempt
 * number.
 */
export function recoverBegun(db: Sqlite): void {
  const left = db
    .prepare<[], { fact_pos: number; handler: number; at: number }>('SELECT fact_pos, handler, at FROM begun')
    .all()
  if (left.length === 0) return
  const cut = db.prepare<[string, string, number, number]>(
    `UPDATE deliveries SET cut = cut + 1, log = CASE log WHEN '' THEN ? ELSE log || ',' || ? END
     WHERE fact_pos = ? AND handler = ? AND status = 0`,
  )
  for (const { fact_pos: pos, handler, at } of left) {
    const entry = JSON.stringify({ at, error: CUT, ms: 0 })
    cut.run(entry, entry, pos, handler)
  }
  db.prepare('DELETE FROM begun').run()
}

/**
 * Each pending fact of an unordered handler has a lane of its own. When the handler becomes ordered, these facts must
 * move to the lanes of their sessions, or they would be delivered in any order.
 */
function gatherLanes(db: Sqlite, handler: number): void {
  // The key of a fact's own lane is the fact's id (`evt_…`); the key of a session's lane is the session's id.
  const old = db
    .prepare<[number], number>(
      `SELECT id FROM lanes WHERE handler = ? AND key >= 'evt_' AND key < 'evt\`'
         AND EXISTS (SELECT 1 FROM facts WHERE facts.id = lanes.key)`,
    )
    .pluck()
    .all(handler)
  if (old.length === 0) return
  const ids = JSON.stringify(old)
  // A wait before the retry of one fact becomes a wait of its session's lane.
  db.prepare<[string]>(
    `INSERT INTO lanes (handler, key, pending, due_at)
       SELECT l.handler, coalesce(f.session_id, ''), count(*), max(l.due_at) FROM lanes l
       JOIN deliveries d ON d.lane = l.id AND d.status = 0 JOIN facts f ON f.pos = d.fact_pos
       WHERE l.id IN (SELECT value FROM json_each(?)) GROUP BY 1, 2
     ON CONFLICT (handler, key) DO UPDATE SET pending = pending + excluded.pending,
       due_at = max(due_at, excluded.due_at)`,
  ).run(ids)
  db.prepare<[string]>(
    `UPDATE deliveries SET lane = (
       SELECT l.id FROM lanes l JOIN facts f ON f.pos = deliveries.fact_pos
       WHERE l.handler = deliveries.handler AND l.key = coalesce(f.session_id, ''))
     WHERE status = 0 AND lane IN (SELECT value FROM json_each(?))`,
  ).run(ids)
  db.prepare<[string]>('DELETE FROM lanes WHERE id IN (SELECT value FROM json_each(?))').run(ids)
}
