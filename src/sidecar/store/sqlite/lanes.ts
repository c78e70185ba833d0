import type { Ack, Attempt, Lane, LanePage, PendingDelivery } from '../../../core/delivery.ts'
import type { Fact, StoredFact } from '../../../core/fact.ts'
import { compilePatterns } from '../../../core/pattern.ts'
import type { Committed, HandlerRegistration, LaneRoom } from '../../../core/store.ts'
import type { HandlerRecord } from '../../../core/store-reader.ts'
import type { Sqlite } from './open.ts'
import { attemptText, CUT, LONG, STATUS } from '../attempt.ts'
import { POSITIONS_OF_SESSION } from './listing.ts'
import { FACT_COLUMNS, factOf, type FactRow } from './log.ts'
import type { Clock, Timer } from '../../../std/ports.ts'
import type { Ownership, Part } from './committer.ts'

/** The service defines the types, so the number of types in memory is limited. */
const TYPES_REMEMBERED = 1000

/**
 * The highest number of a handler that has a bit in `facts.wanted`. A delivery to a handler with a higher number has a
 * row from the start.
 */
const HIGHEST_BIT = 30

export interface Handler extends Pick<HandlerRegistration, 'name' | 'ordered'> {
  number: number
  /** Its bit in `facts.wanted`; 0: its deliveries have rows from the start. */
  bit: number
  wants(type: string): boolean
}

/** The handlers that are configured, with the numbers that the store gave them. */
export class Handlers {
  readonly #byType = new Map<string, Handler[]>()
  #byName: ReadonlyMap<string, Handler> = new Map()

  /** @returns the records of the handlers `given`, which replace the former ones. */
  configure(given: readonly HandlerRegistration[], records: readonly HandlerRecord[]): HandlerRecord[] {
    const known = new Map(records.map((record) => [record.name, record]))
    this.#byType.clear()
    this.#byName = new Map(
      given.map(({ name, ordered, events }) => {
        const number = known.get(name)?.number ?? 0
        const bit = ordered ? bitOf(number) : 0
        return [name, { name, ordered, number, bit, wants: compilePatterns(events).wants }]
      }),
    )
    return given.flatMap(({ name }) => known.get(name) ?? [])
  }

  /** The numbers of the handlers that are ordered. */
  get ordered(): number[] {
    return [...this.#byName.values()].flatMap(({ number, ordered }) => (ordered ? [number] : []))
  }

  /** null: no handler of that name is configured. */
  find(name: string): Handler | null {
    return this.#byName.get(name) ?? null
  }

  numberOf(name: string): number | null {
    return this.#byName.get(name)?.number ?? null
  }

  /** `number`: the handler's. A handler that is no longer configured counts as ordered. */
  isOrdered(number: number): boolean {
    for (const handler of this.#byName.values()) if (handler.number === number) return handler.ordered
    return true
  }

  /** The handlers that select facts of a type. */
  interested(type: string): readonly Handler[] {
    let list = this.#byType.get(type)
    if (list === undefined) {
      list = [...this.#byName.values()].filter((handler) => handler.wants(type))
      if (this.#byType.size >= TYPES_REMEMBERED) this.#byType.clear()
      this.#byType.set(type, list)
    }
    return list
  }

  /** The facts of each lane, in their order, by handler and key. */
  sort<F extends Fact>(facts: readonly F[]): Map<Handler, Map<string, F[]>> {
    const sorted = new Map<Handler, Map<string, F[]>>()
    for (const fact of facts) {
      for (const handler of this.interested(fact.type)) {
        let byKey = sorted.get(handler)
        if (byKey === undefined) sorted.set(handler, (byKey = new Map()))
        const key = handler.ordered ? (fact.sessionId ?? '') : fact.id
        const list = byKey.get(key)
        if (list === undefined) byKey.set(key, [fact])
        else list.push(fact)
      }
    }
    return sorted
  }

  /** The bits of the handlers that select facts of a type: of those whose deliveries have no row at first. */
  wanted(type: string): number {
    let bits = 0
    for (const { bit } of this.interested(type)) bits |= bit
    return bits
  }
}

/** 0: the handler's number is above the last bit. */
export function bitOf(number: number): number {
  return number <= HIGHEST_BIT ? 1 << number : 0
}

/** Outcomes in one statement. */
const TOGETHER = 16
/** Later than any position. */
const LAST = Number.MAX_SAFE_INTEGER

/** What the acks of one transaction change in a lane. */
interface LaneProgress {
  /** The handler's. */
  number: number
  /** Deliveries that are delivered or dead now. */
  ended: number
  /** `ended` may be too high: then the pending deliveries are counted. */
  doubtful: boolean
}

/** The outcome of most deliveries: one without a row succeeded, and there is no answer to store. */
interface PlainAck {
  ack: Ack
  of: LaneProgress
}

interface LanesParts {
  db: Sqlite
  ownership: Ownership
  begun: BegunAttempts
  rows: DeliveryRows
  /** Called for a fact whose checksum does not match. */
  onDamage(pos: number): void
}

/**
 * Deliveries in lanes. A worker claims a lane before it delivers from it. One process owns the database (open.ts), so
 * claims live in memory and a crash frees them.
 */
export class Lanes {
  readonly configured = new Handlers()
  readonly #claimed = new Set<number>()
  readonly #db: Sqlite
  readonly #addRows
  readonly #growLane
  readonly #shrinkLane
  readonly #countLane
  readonly #dropLane
  readonly #postpone
  readonly #record
  readonly #recordFresh
  readonly #recordDelivered
  readonly #due
  readonly #next
  readonly #pending
  readonly #fresh
  readonly rows: DeliveryRows
  readonly #listHandlers
  readonly #begun: BegunAttempts
  readonly onDamage: (pos: number) => void
  readonly #ownership: Ownership

  constructor({ db, ownership, begun, rows, onDamage }: LanesParts) {
    this.#db = db
    this.#ownership = ownership
    this.#begun = begun
    this.rows = rows
    this.onDamage = onDamage
    this.#addRows = db.prepare<[number, string]>(
      `INSERT INTO delivery_rows (fact_pos, handler, lane, status, attempts, log)
       SELECT CAST(key AS INTEGER), ?, value, 0, 0, '' FROM json_each(?)`,
    )
    this.#growLane = db.prepare<[number, string, number], { id: number; pending: number }>(
      `INSERT INTO lanes (handler, key, pending, due_at) VALUES (?, ?, ?, 0)
       ON CONFLICT (handler, key) DO UPDATE SET pending = pending + excluded.pending,
         due_at = CASE WHEN pending = 0 THEN 0 ELSE due_at END
       RETURNING id, pending`,
    )
    this.#shrinkLane = db.prepare<[number, number]>('UPDATE lanes SET pending = pending - ? WHERE id = ?')
    this.#countLane = db.prepare<[number]>(
      'UPDATE lanes SET pending = (SELECT count(*) FROM deliveries WHERE lane = lanes.id AND status = 0) WHERE id = ?',
    )
    this.#dropLane = db.prepare<[number]>('DELETE FROM lanes WHERE id = ? AND pending = 0')
    this.#postpone = db.prepare<[number, number]>('UPDATE lanes SET due_at = ? WHERE id = ?')
    this.#record = db.prepare<[number, number, string, string | null, number, number]>(
      `UPDATE delivery_rows SET status = ?, attempts = ?, log = iif(log = '', '', log || ',') || ?,
         answer = coalesce(?, answer)
       WHERE fact_pos = ? AND handler = ? AND status = 0`,
    )
    const insert = (row: string, times: number) =>
      db.prepare(
        `INSERT INTO delivery_rows (fact_pos, handler, lane, attempts, log, status, answer)
         VALUES ${Array<string>(times).fill(row).join(', ')}
         ON CONFLICT (fact_pos, handler) DO UPDATE SET status = excluded.status, attempts = excluded.attempts,
           log = iif(log = '', '', log || ',') || excluded.log, answer = coalesce(excluded.answer, answer)
         WHERE status = 0`,
      )
    this.#recordFresh = insert('(?, ?, ?, ?, ?, ?, ?)', 1)
    this.#recordDelivered = insert('(?, ?, ?, ?, ?, 1, NULL)', TOGETHER)
    this.#due = db.prepare<[number, number, number, number], { id: number; key: string }>(
      'SELECT id, key FROM lanes WHERE handler = +? AND pending > 0 AND due_at <= ? AND due_at >= ? ORDER BY due_at LIMIT +?',
    )
    this.#next = db.prepare<[number, number], { id: number; due_at: number }>(
      'SELECT id, due_at FROM lanes WHERE handler = +? AND pending > 0 ORDER BY due_at LIMIT +?',
    )
    this.#pending = db.prepare<[number, number, number], FactRow & { attempts: number; cut: number }>(
      `SELECT d.attempts, d.cut, ${FACT_COLUMNS} FROM delivery_rows d JOIN facts f ON f.pos = d.fact_pos
       WHERE d.lane = +? AND d.status = 0 AND d.fact_pos > ? ORDER BY d.fact_pos LIMIT +?`,
    )
    // Facts without a session have no entries in `session_facts`: the part behind UNION ALL finds those.
    this.#fresh = db.prepare<unknown[], FactRow & { attempts: number; cut: number }>(
      `SELECT 0 AS attempts, 0 AS cut, ${FACT_COLUMNS} FROM facts f
       WHERE f.pos IN (${POSITIONS_OF_SESSION}
           UNION ALL SELECT pos FROM facts WHERE ? IS NULL AND pos >= ? AND coalesce(session_id, '') = '')
         AND f.wanted & ? AND NOT EXISTS (SELECT 1 FROM delivery_rows d WHERE d.fact_pos = f.pos AND d.handler = ?)
       ORDER BY f.pos LIMIT +?`,
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
    // A handler may become unordered. Its pending deliveries then stay in their lanes, so they get rows now.
    this.rows.writeAll()
    const records = this.configured.configure(handlers, this.handlers())
    for (const number of this.configured.ordered) gatherLanes(this.#db, number)
    return records
  }

  /** One statement updates each lane, and one writes the rows that a handler's deliveries need, for any number of facts. */
  fanOut(facts: readonly StoredFact[], into: Committed): void {
    for (const [handler, byKey] of this.configured.sort(facts)) {
      const rows: string[] = []
      for (const [key, mine] of byKey) {
        const lane = this.#extend(handler, key, mine, into)
        if (handler.bit === 0) for (const { pos } of mine) rows.push(`"${pos}":${lane}`)
      }
      if (rows.length > 0) this.#addRows.run(handler.number, `{${rows.join()}}`)
    }
    this.rows.writeOld(facts.at(-1)?.pos ?? 0)
  }

  /** @returns the number of the lane. */
  #extend(
    { number, name: handler }: Handler,
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

  /** Claims the lanes of a commit; called when the commit is durable. */
  claimFresh(committed: Committed): void {
    for (const extension of committed.lanes) {
      if (!extension.claimed) continue
      // Two commits shared a transaction: the claim of the first one holds.
      if (this.#claimed.has(extension.lane.id)) extension.claimed = false
      else this.#claimed.add(extension.lane.id)
    }
  }

  claim({ handler, lanes: limit, returned = false }: LaneRoom, now: number): Lane[] {
    const number = this.configured.numberOf(handler)
    if (number === null) return []
    const lanes: Lane[] = []
    // The first rows may be claimed lanes, so the query asks for that many rows more.
    for (const row of this.#due.all(number, now, returned ? 1 : 0, limit + this.#claimed.size)) {
      if (lanes.length === limit) break
      if (this.#claimed.has(row.id)) continue
      this.#claimed.add(row.id)
      lanes.push({ id: row.id, handler, key: row.key, lease: this.#ownership.lease })
    }
    return lanes
  }

  next(handler: string): number | null {
    const number = this.configured.numberOf(handler)
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

  read(lane: Lane, after: number, limit: number, maxBytes: number): LanePage {
    const found: PendingDelivery[] = []
    let [bytes, left] = [0, limit]
    for (const row of this.#stored(lane, after, limit)) {
      bytes += row.body.length
      if (found.length > 0 && bytes > maxBytes) return { deliveries: found, complete: false }
      left--
      const fact = factOf(row)
      if (fact === null) {
        this.onDamage(row.pos)
        continue
      }
      found.push({ attempts: row.attempts, cut: row.cut, fact })
    }
    return { deliveries: found, complete: left > 0 }
  }

  /** Deliveries with a row come before those without: in an ordered lane the first ones get their rows first. */
  *#stored(lane: Lane, after: number, limit: number): Generator<FactRow & { attempts: number; cut: number }> {
    let left = limit
    for (const row of this.#pending.iterate(lane.id, after, limit)) {
      left--
      yield row
    }
    const handler = this.configured.find(lane.handler)
    if (left === 0 || handler === null || handler.bit === 0) return
    const from = Math.max(after, this.rows.written) + 1
    const key = lane.key === '' ? null : lane.key
    const positions = [key, from, LAST, key, from, LAST, key, from]
    yield* this.#fresh.iterate(...positions, handler.bit, handler.number, left)
  }

  begin(lane: Lane, positions: readonly number[]): void {
    const number = this.configured.numberOf(lane.handler)
    if (number !== null && this.#ownership.holds(lane.lease)) this.#begun.begin(lane, number, positions)
  }

  /** Forgets an attempt whose outcome is not stored. */
  drop(lane: Lane, positions: readonly number[]): void {
    const number = this.configured.numberOf(lane.handler)
    if (number !== null && this.#ownership.holds(lane.lease)) this.#begun.drop(lane, number, positions)
  }

  /** Called after the transaction of `acknowledge`. */
  acknowledged(acks: readonly Ack[]): void {
    for (const { lane, pos } of acks) {
      const number = this.configured.numberOf(lane.handler)
      if (number !== null) this.#begun.ended(number, pos)
    }
  }

  acknowledge(acks: readonly Ack[], now: number): void {
    const { written } = this.rows
    const lanes = new Map<number, LaneProgress>()
    const plain: PlainAck[] = []
    for (const ack of acks) {
      const { lane, pos, result, attempt } = ack
      const number = this.configured.numberOf(lane.handler)
      if (number === null || !this.#ownership.holds(lane.lease)) continue
      this.#begun.store(lane, number, pos)
      let of = lanes.get(lane.id)
      if (of === undefined) lanes.set(lane.id, (of = { number, ended: 0, doubtful: false }))
      if (pos > written && result === 'delivered' && attempt.answer === undefined) plain.push({ ack, of })
      else of.ended += this.#acknowledge(ack, number, pos > written, now)
    }
    this.#acknowledgePlain(plain)
    for (const [id, { number, ended, doubtful }] of lanes) {
      if (doubtful) this.#countLane.run(id)
      else if (ended > 0) this.#shrinkLane.run(ended, id)
      if (!this.configured.isOrdered(number)) this.#dropLane.run(id)
    }
  }

  /** By position, so that the rows extend the table at its end. */
  #acknowledgePlain(acks: PlainAck[]): void {
    acks.sort((one, other) => one.ack.pos - other.ack.pos)
    for (let from = 0; from < acks.length; from += TOGETHER) {
      const group = acks.slice(from, from + TOGETHER)
      if (group.length < TOGETHER) {
        for (const { ack, of } of group) of.ended += this.#acknowledge(ack, of.number, true, 0)
        continue
      }
      const { changes } = this.#recordDelivered.run(plainColumns(group))
      for (const { of } of group) {
        of.ended++
        // At least one of them had ended before, and nothing shows which.
        if (changes !== TOGETHER) of.doubtful = true
      }
    }
  }

  /** @returns how many deliveries ended: 1, or 0 when it is tried again or had ended before. */
  #acknowledge(ack: Ack, number: number, fresh: boolean, now: number): number {
    const { lane, pos, result, attempts, attempt, after } = ack
    const [status, text, answer] = [STATUS[result], attemptText(attempt), attempt.answer ?? null]
    const { changes } = fresh
      ? this.#recordFresh.run(pos, number, lane.id, attempts, text, status, answer)
      : this.#record.run(status, attempts, text, answer, pos, number)
    if (result !== 'retry') return changes
    if (after !== null) this.#postpone.run(Math.ceil(now + after), lane.id)
    return 0
  }
}

function plainColumns(acks: readonly PlainAck[]): (string | number)[] {
  const columns: (string | number)[] = []
  let last: Attempt | null = null
  let text = ''
  for (const { ack, of } of acks) {
    // The facts of one callback share the attempt.
    if (ack.attempt !== last) text = attemptText((last = ack.attempt))
    columns.push(ack.pos, of.number, ack.lane.id, ack.attempts, text)
  }
  return columns
}

/**
 * How many of the newest facts need no row for a pending delivery. Rows are written once there are half as many more.
 */
const FRESH = 8192

/**
 * 40,000 facts are delivered within seconds of their commit. A row for each pending delivery would be written and soon
 * written again, so a delivery of the newest facts has no row before its first outcome (migrations/0012.sql). Those that
 * stay pending get their rows here. Everything runs inside a transaction of the caller's.
 */
export class DeliveryRows {
  readonly #kept: number
  readonly #written
  readonly #newest
  readonly #write
  readonly #note

  constructor(db: Sqlite, kept = FRESH) {
    this.#kept = kept
    this.#written = db
      .prepare<[], number>(`SELECT CAST(value AS INTEGER) FROM checkpoints WHERE name = 'delivery_rows'`)
      .pluck()
    this.#newest = db.prepare<[], number>('SELECT ifnull(max(pos), 0) FROM facts').pluck()
    this.#write = db.prepare<[number]>(
      `INSERT INTO delivery_rows (fact_pos, handler, lane, status, attempts, log)
       SELECT fact_pos, handler, lane, 0, 0, '' FROM fresh_deliveries WHERE fact_pos <= ?`,
    )
    this.#note = db.prepare<[number]>(
      `INSERT INTO checkpoints (name, value) VALUES ('delivery_rows', CAST(? AS INTEGER))
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
    )
  }

  /** The position up to which every delivery has a row. Read each time: a rollback takes it back. */
  get written(): number {
    return this.#written.get() ?? 0
  }

  /** Writes the rows of pending deliveries whose facts are no longer among the newest. */
  writeOld(newest: number): void {
    if (newest - this.written >= this.#kept * 1.5) this.#writeUpTo(newest - this.#kept)
  }

  /** Called before work that sees only deliveries with a row, such as a replay. */
  writeAll(): void {
    const newest = this.#newest.get() ?? 0
    if (newest > this.written) this.#writeUpTo(newest)
  }

  #writeUpTo(pos: number): void {
    this.#write.run(pos)
    this.#note.run(pos)
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
export class BegunAttempts implements Part {
  readonly #clock: Clock
  readonly #add
  readonly #remove
  readonly #write: Write
  /**
   * The last attempt of each lane. A lane uses one entry for all its attempts: a map whose entries come and go leaves
   * old tables behind, and V8 keeps alive what they refer to.
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
    // If this fails, the row stays, and shows as an interrupted attempt after the next start.
    this.#write(remove, () => positions.forEach((pos) => this.ended(handler, pos))).catch(() => undefined)
  }

  #forget(lane: Lane, pos: number): void {
    const last = this.#unwritten.get(lane.id)
    if (last?.positions.includes(pos) === true) last.since = Infinity
  }

  /** Writes the attempts that take long, in every transaction. */
  note(): void {
    if (this.#staged.length > 0) this.#staged = []
    const before = this.#clock.steady() - LONG
    for (const begun of this.#unwritten.values()) {
      if (begun.since > before) continue
      for (const pos of begun.positions) this.#add.run(pos, begun.handler, begun.at)
      this.#staged.push(begun)
    }
  }

  committed(): void {
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
 * Records the attempts that the last process left as interrupted. An interrupted attempt raises the attempt number, and
 * does not count against the retry policy.
 */
export function recoverBegun(db: Sqlite): void {
  new DeliveryRows(db).writeAll()
  const left = db
    .prepare<[], { fact_pos: number; handler: number; at: number }>('SELECT fact_pos, handler, at FROM begun')
    .all()
  if (left.length === 0) return
  const cut = db.prepare<[string, string, number, number]>(
    `UPDATE delivery_rows SET cut = cut + 1, log = CASE log WHEN '' THEN ? ELSE log || ',' || ? END
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
       JOIN delivery_rows d ON d.lane = l.id AND d.status = 0 JOIN facts f ON f.pos = d.fact_pos
       WHERE l.id IN (SELECT value FROM json_each(?)) GROUP BY 1, 2
     ON CONFLICT (handler, key) DO UPDATE SET pending = pending + excluded.pending,
       due_at = max(due_at, excluded.due_at)`,
  ).run(ids)
  db.prepare<[string]>(
    `UPDATE delivery_rows SET lane = (
       SELECT l.id FROM lanes l JOIN facts f ON f.pos = delivery_rows.fact_pos
       WHERE l.handler = delivery_rows.handler AND l.key = coalesce(f.session_id, ''))
     WHERE status = 0 AND lane IN (SELECT value FROM json_each(?))`,
  ).run(ids)
  db.prepare<[string]>('DELETE FROM lanes WHERE id IN (SELECT value FROM json_each(?))').run(ids)
}
