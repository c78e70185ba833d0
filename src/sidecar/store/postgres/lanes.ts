import type { Ack, Lane, LanePage, PendingDelivery } from '../../../core/delivery.ts'
import type { Fact, StoredFact } from '../../../core/fact.ts'
import type { Committed, HandlerRegistration, LaneRoom } from '../../../core/store.ts'
import type { HandlerRecord } from '../../../core/store-reader.ts'
import { attemptText, STATUS } from '../attempt.ts'
import { bitOf, Handlers, type Handler } from '../sqlite/lanes.ts'
import { FACT_COLUMNS, factOf, type FactRow } from '../sqlite/log.ts'
import type { BegunAttempts } from './begun.ts'
import { boundBodies, OCTETS } from './bodies.ts'
import { Claims } from './claims.ts'
import { together } from './committer.ts'
import type { Queries, Value } from './database.ts'
import { EXTEND, type ExtendedLane, type SessionLanes } from './log.ts'
import { LEADER, placeOf, type Membership } from '../membership.ts'
import { sparse } from './text.ts'

/** Facts of one commit for one lane. */
interface Addition<F extends Fact> {
  handler: Handler
  key: string
  facts: F[]
}

/** An outcome, with the number of the handler. */
type HandlerAck = Ack & { handler: number }

/** What the acks of one transaction change in a lane. */
interface Progress {
  handler: number
  /** The positions of deliveries that are delivered or dead now. */
  ended: number[]
  /** The position after the last of its deliveries with an outcome. */
  reached: number
  dueAt: number | null
}

/**
 * The pending deliveries of a lane, those with a row and those without. It finds none if the leader has removed the
 * lane because it was empty: later deliveries of its session are in another lane.
 */
const READ = boundBodies(
  `SELECT * FROM (
    (SELECT d.attempts, d.cut, ${FACT_COLUMNS} FROM sidecar.delivery_rows d JOIN sidecar.facts f ON f.pos = d.fact_pos
      WHERE d.lane = $1 AND d.status = 0 AND d.fact_pos > $2::bigint ORDER BY d.fact_pos LIMIT $3)
    UNION ALL
    (SELECT 0, 0, ${FACT_COLUMNS} FROM sidecar.facts f
      WHERE coalesce(f.session_id, '') = $4 AND f.wanted & $5::int <> 0
        AND f.pos > $2::bigint AND f.pos >= (SELECT fresh FROM sidecar.lanes WHERE id = $1)
        AND (SELECT d.status FROM sidecar.delivery_rows d WHERE d.fact_pos = f.pos AND d.handler = $6) IS NULL
      ORDER BY f.pos LIMIT $3)
  ) found ORDER BY pos LIMIT $3`,
  '$7::bigint',
)

/** How many positions too low `fresh` of a lane may be. A read from there skips at most so many facts. */
const BEHIND = 1000

/**
 * If all pending deliveries of a lane are among the first facts from `reached` on, none is before. In a burst these are
 * few, while `first_fresh` would look at each delivery since `fresh`: a tenth of the server's time.
 */
const FEW = 64
/** How many of the first facts are looked at. */
const AHEAD = 256
const FRESH_AHEAD = `(SELECT count(*) FROM (SELECT f.pos, f.wanted FROM sidecar.facts f
    WHERE coalesce(f.session_id, '') = l.key AND f.pos >= g.reached ORDER BY f.pos LIMIT ${AHEAD}) ahead
  WHERE l.handler <= 30 AND ahead.wanted >> l.handler & 1 = 1
    AND (SELECT d.status FROM sidecar.delivery_rows d WHERE d.fact_pos = ahead.pos AND d.handler = l.handler) IS NULL)`

/** The order in which frames and outcomes lock lanes (committer.ts): that of the column, by bytes. */
const BY_KEY = 'a.handler, a.key COLLATE "C"'

/**
 * Adds to each lane those of $4 facts that are new. Nearly always all are, and then the given number is right. Otherwise the
 * facts of each lane are counted, which takes the server ten times as long.
 */
const ADD_TO_LANES = `
  WITH drawn AS MATERIALIZED (SELECT last - $4::bigint AS base,
    (SELECT count(*) FROM sidecar.facts WHERE pos > last - $4::bigint) = $4::bigint AS are_new FROM sidecar.positions WHERE name = 'facts')
  INSERT INTO sidecar.lanes AS l (handler, key, shard, pending, fresh, due_at)
  SELECT a.handler, a.key, a.shard, n.pending, n.first, 0
  FROM drawn, unnest($1::int[], $2::text[], $3::smallint[], $5::bigint[], $6::bigint[])
    AS a(handler, key, shard, facts, first), LATERAL (
    SELECT a.facts AS pending, base + a.first AS first WHERE are_new
    UNION ALL SELECT count(*), min(f.pos) FROM sidecar.facts f
    WHERE NOT are_new AND coalesce(f.session_id, '') = a.key AND f.wanted >> a.handler & 1 = 1 AND f.pos > base) n
  WHERE n.pending > 0 ORDER BY ${BY_KEY} ${EXTEND}`

/** The deliveries whose row a statement wrote, unless these are all. */
const PART = `SELECT CASE WHEN (SELECT count(*) FROM recorded) < $8
  THEN coalesce((SELECT string_agg(fact_pos || ' ' || handler, ',') FROM recorded), '') END AS part`
const OUTCOMES = `(SELECT unnest($1::bigint[]) AS fact_pos, unnest($2::int[]) AS handler, unnest($3::bigint[]) AS lane,
  unnest($4::smallint[]) AS status, unnest($5::int[]) AS attempts, unnest($6::text[]) AS log, unnest($7::text[]) AS answer) g`
const INTO = 'INSERT INTO sidecar.delivery_rows AS d (fact_pos, handler, lane, status, attempts, log, answer)'

/** First outcomes: nearly all outcomes are. The statement fails if a delivery has a row. */
const NEW_OUTCOMES = `${INTO} SELECT g.* FROM ${OUTCOMES}`
/** First outcomes. With `ON CONFLICT`, the server would write a second record to its log for each row. */
const FIRST_OUTCOMES = `
  WITH recorded AS (${INTO} SELECT g.* FROM ${OUTCOMES}
    WHERE (SELECT old.status FROM sidecar.delivery_rows old WHERE old.fact_pos = g.fact_pos AND old.handler = g.handler) IS NULL
    RETURNING fact_pos, handler) ${PART}`
/** Outcomes of deliveries that may have a row. */
const LATER_OUTCOMES = `
  WITH recorded AS (${INTO} SELECT g.* FROM ${OUTCOMES}
    ON CONFLICT (fact_pos, handler) DO UPDATE SET status = excluded.status, attempts = excluded.attempts,
      log = d.log || CASE d.log WHEN '' THEN '' ELSE ',' END || excluded.log, answer = coalesce(excluded.answer, d.answer)
    WHERE d.status = 0
    RETURNING fact_pos, handler) ${PART}`

/** Deliveries in lanes. A worker claims a lane before it delivers from it; claims live in memory. */
export class Lanes {
  readonly configured = new Handlers()
  readonly #claims: Claims<number>
  readonly #begun: BegunAttempts
  readonly #membership: Membership
  readonly #onDamage: (pos: number) => void

  constructor(membership: Membership, begun: BegunAttempts, onDamage: (pos: number) => void) {
    this.#membership = membership
    this.#claims = new Claims((shard) => membership.mayClaim(shard))
    this.#begun = begun
    this.#onDamage = onDamage
  }

  /** The number of claims of a shard. */
  claimed(shard: number): number {
    return this.#claims.countOf(shard)
  }

  async handlers(queries: Queries): Promise<HandlerRecord[]> {
    return await queries.rows<HandlerRecord>(
      'SELECT number, name, paused_at AS "pausedAt", pause_reason AS "pauseReason" FROM sidecar.handlers ORDER BY number',
    )
  }

  async register(queries: Queries, handlers: readonly HandlerRegistration[]): Promise<HandlerRecord[]> {
    // A name that is in conflict uses a number up: after some dozens of starts, a new handler got one above the last bit.
    await queries.change(
      `INSERT INTO sidecar.handlers (name) SELECT name FROM unnest($1::text[]) AS given(name)
       WHERE name NOT IN (SELECT name FROM sidecar.handlers) ON CONFLICT DO NOTHING`,
      [handlers.map(({ name }) => name)],
    )
    return this.configured.configure(handlers, await this.handlers(queries))
  }

  /** null where a handler has a lane for each fact: its deliveries have rows from the start. */
  lanesOf(fact: Fact): SessionLanes | null {
    const handlers = this.configured.interested(fact.type)
    if (handlers.some(({ bit }) => bit === 0)) return null
    const key = fact.sessionId ?? ''
    return {
      handlers: handlers.map(({ number }) => number).toSorted((a, b) => a - b),
      key,
      shard: shardOfLane(fact, key),
    }
  }

  /**
   * Adds those of `facts` that are new to their lanes. The statement is sent directly behind the one that adds the
   * facts, before it is known which of them are new: it looks at the positions that were drawn last.
   * @returns null where a fact has a lane of its own: only the answer of that statement shows whether it is new.
   */
  extend(queries: Queries, facts: readonly Fact[]): Promise<ExtendedLane[]> | null {
    const additions = this.#sort(facts)
    if (additions.length === 0 || additions.some(({ handler }) => handler.bit === 0)) return null
    const places = new Map(facts.map((fact, index) => [fact, index + 1]))
    return queries.rows<ExtendedLane>(ADD_TO_LANES, [
      ...placesOf(additions),
      facts.length,
      additions.map(({ facts: { length } }) => length),
      additions.map(({ facts: [first] }) => (first === undefined ? 0 : (places.get(first) ?? 0))),
    ])
  }

  /**
   * Writes each lane once, for any number of facts, and the rows of deliveries that need one. `extended`: what `extend` has
   * written.
   */
  async fanOut(
    queries: Queries,
    facts: readonly StoredFact[],
    extended: readonly ExtendedLane[] | null,
    into: Committed,
  ): Promise<void> {
    const additions = this.#sort(facts)
    if (additions.length === 0) return
    const rows = extended ?? (await this.#write(queries, additions))
    const lanes = new Map(rows.map((row) => [`${row.handler} ${row.key}`, row]))
    const deliveries: { pos: number; handler: number; lane: number }[] = []
    for (const addition of additions) {
      const { handler, key } = addition
      const row = lanes.get(`${handler.number} ${key}`)
      if (row === undefined) throw new Error('the lane was not written')
      if (handler.bit === 0)
        for (const { pos } of addition.facts) deliveries.push({ pos, handler: handler.number, lane: row.id })
      const shard = shardOfLane(addition.facts[0], key)
      const isFresh = row.pending === addition.facts.length && !this.#claims.has(row.id)
      into.lanes.push({
        lane: { id: row.id, handler: handler.name, key, lease: this.#membership.leaseOf(shard) },
        claimed: isFresh && this.#membership.mayClaim(shard),
        deliveries: addition.facts.map((fact) => ({ attempts: 0, cut: 0, fact })),
      })
    }
    if (deliveries.length === 0) return
    await queries.change(
      `INSERT INTO sidecar.delivery_rows (fact_pos, handler, lane, status, attempts, log)
       SELECT *, 0, 0, '' FROM unnest($1::bigint[], $2::int[], $3::bigint[])`,
      [
        deliveries.map(({ pos }) => pos),
        deliveries.map(({ handler }) => handler),
        deliveries.map(({ lane }) => lane),
      ],
    )
  }

  async #write(
    queries: Queries,
    additions: readonly Addition<StoredFact>[],
  ): Promise<readonly ExtendedLane[]> {
    return await queries.rows<ExtendedLane>(
      `INSERT INTO sidecar.lanes AS l (handler, key, shard, pending, fresh, due_at)
       SELECT *, 0 FROM unnest($1::int[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[])
         AS a(handler, key, shard, pending, fresh) ORDER BY ${BY_KEY} ${EXTEND}`,
      [
        ...placesOf(additions),
        additions.map(({ facts: { length } }) => length),
        additions.map(({ facts: [first] }) => first?.pos ?? 0),
      ],
    )
  }

  #sort<F extends Fact>(facts: readonly F[]): Addition<F>[] {
    const additions: Addition<F>[] = []
    for (const [handler, byKey] of this.configured.sort(facts))
      for (const [key, mine] of byKey) additions.push({ handler, key, facts: mine })
    return additions
  }

  /** Claims the lanes of a commit; called when the commit is durable. */
  claimFresh(committed: Committed): void {
    for (const extension of committed.lanes) {
      if (!extension.claimed) continue
      const { lane, deliveries } = extension
      const shard = shardOfLane(deliveries[0]?.fact, lane.key)
      // Another commit of the transaction or a reader has claimed it first; or its shard is being handed over.
      if (this.#claims.has(lane.id) || !this.#membership.mayClaim(shard)) extension.claimed = false
      else this.#claims.add(lane.id, shard)
    }
  }

  async claim(
    queries: Queries,
    { handler, lanes: room, returned = false }: LaneRoom,
    now: number,
  ): Promise<Lane[]> {
    const number = this.configured.numberOf(handler)
    const { claimable } = this.#membership
    if (number === null || claimable?.length === 0) return []
    const rows = await this.#claims.claim(
      room,
      (limit) =>
        queries.rows<{ id: number; key: string; shard: number }>(
          `SELECT id, key, shard FROM sidecar.lanes WHERE handler = $1 AND pending > 0 AND due_at <= $2::bigint AND due_at >= $5
             AND ($4::smallint[] IS NULL OR shard = ANY ($4)) ORDER BY due_at LIMIT $3`,
          [number, Math.floor(now), limit, claimable, returned ? 1 : 0],
        ),
      ({ id, shard }) => [id, shard],
    )
    return rows.map(({ id, key, shard }) => ({ id, handler, key, lease: this.#membership.leaseOf(shard) }))
  }

  async next(queries: Queries, handler: string): Promise<number | null> {
    const number = this.configured.numberOf(handler)
    const { claimable } = this.#membership
    if (number === null || claimable?.length === 0) return null
    const row = await this.#claims.first(
      (limit) =>
        queries.rows<{ id: number; due_at: number }>(
          `SELECT id, due_at FROM sidecar.lanes WHERE handler = $1 AND pending > 0
             AND ($3::smallint[] IS NULL OR shard = ANY ($3)) ORDER BY due_at LIMIT $2`,
          [number, limit, claimable],
        ),
      ({ id }) => id,
    )
    return row?.due_at ?? null
  }

  release({ id, lease }: Lane): void {
    if (this.#membership.holds(lease)) this.#claims.release(id)
  }

  isClaimed(id: number): boolean {
    return this.#claims.has(id)
  }

  async postpone(queries: Queries, { id, lease }: Lane, dueAt: number): Promise<void> {
    if (this.#membership.holds(lease))
      await queries.change('UPDATE sidecar.lanes SET due_at = $1 WHERE id = $2', [Math.ceil(dueAt), id])
  }

  async read(
    queries: Queries,
    lane: Lane,
    { after, limit, maxBytes }: { after: number; limit: number; maxBytes: number },
  ): Promise<LanePage> {
    const number = this.configured.numberOf(lane.handler) ?? 0
    const found: PendingDelivery[] = []
    let bytes = 0
    let last: number | null = after
    let complete = false
    while (last !== null && found.length === 0) {
      const rows = await this.#pending(queries, lane, { after: last, limit, maxBytes, number })
      // Damaged facts may fill a page: the next ones follow them.
      last = rows.at(-1)?.pos ?? null
      complete = rows.length < limit && (rows.at(-1)?.octets ?? 0) < maxBytes * OCTETS
      for (const row of rows) {
        bytes += row.body.length
        if (found.length > 0 && bytes > maxBytes) return { deliveries: found, complete: false }
        const fact = factOf(row)
        if (fact === null) this.#onDamage(row.pos)
        else found.push({ attempts: row.attempts, cut: row.cut, fact })
      }
    }
    return { deliveries: found, complete }
  }

  async #pending(
    queries: Queries,
    lane: Lane,
    { after, limit, maxBytes, number }: { after: number; limit: number; maxBytes: number; number: number },
  ): Promise<(FactRow & { attempts: number; cut: number; octets: number })[]> {
    // A handler that is unordered now may have deliveries without a row from the time when it was ordered.
    return await queries.rows(READ, [
      lane.id,
      after,
      limit,
      lane.key,
      bitOf(number),
      number,
      maxBytes * OCTETS,
    ])
  }

  begin(lane: Lane, positions: readonly number[]): void {
    const number = this.configured.numberOf(lane.handler)
    if (number !== null)
      this.#begun.begin(lane, number, {
        positions,
        shard: this.#claims.shardOf(lane.id) ?? placeOf(lane.key),
      })
  }

  /** Forgets an attempt whose outcome is not stored. */
  drop(lane: Lane, positions: readonly number[]): void {
    const number = this.configured.numberOf(lane.handler)
    if (number !== null) this.#begun.drop(lane, number, positions)
  }

  /** Called after the transaction of `acknowledge`. */
  acknowledged(acks: readonly Ack[]): void {
    for (const { lane, pos } of acks) {
      const number = this.configured.numberOf(lane.handler)
      if (number !== null) this.#begun.settled(number, pos)
    }
  }

  /** `optimistic`: a first outcome fails if its delivery has a row. */
  async acknowledge(
    queries: Queries,
    given: readonly Ack[],
    { now, optimistic }: { now: number; optimistic: boolean },
  ): Promise<void> {
    const acks: HandlerAck[] = []
    for (const ack of given) {
      const handler = this.configured.numberOf(ack.lane.handler)
      if (handler !== null && this.#membership.holds(ack.lane.lease)) acks.push({ ...ack, handler })
    }
    if (acks.length === 0) return
    await this.#begun.settle(queries, acks)
    const lanes = new Map<number, Progress>()
    const rounds = roundsOf(acks)
    const [all = []] = rounds
    // All outcomes are stored, or the transaction fails: the next statements need no answer.
    const inserting =
      optimistic && rounds.length === 1 && all.every((ack) => this.#isFirst(ack))
        ? this.#insert(queries, all)
        : null
    if (inserting !== null) note(lanes, all, all)
    else for (const round of rounds) note(lanes, round, await this.#record(queries, round, optimistic))
    for (const { lane, result, after } of acks) {
      const of = lanes.get(lane.id)
      if (of !== undefined && result === 'retry' && after !== null) of.dueAt = Math.ceil(now + after)
    }
    await together([inserting, this.#shrink(queries, [...lanes])])
    const unordered = acks.flatMap(({ lane, handler }) =>
      this.configured.isOrdered(handler) ? [] : [lane.id],
    )
    if (unordered.length > 0)
      await queries.change('DELETE FROM sidecar.lanes WHERE id = ANY ($1::bigint[]) AND pending = 0', [
        unordered,
      ])
  }

  /**
   * Records one outcome for each delivery. @returns those that were recorded: the outcome of a delivery that had ended
   * before changes nothing.
   */
  async #record(
    queries: Queries,
    acks: readonly HandlerAck[],
    optimistic: boolean,
  ): Promise<readonly HandlerAck[]> {
    const { first = [], later = [] } = Object.groupBy(acks, (ack) => (this.#isFirst(ack) ? 'first' : 'later'))
    const inserted = await (optimistic
      ? this.#insert(queries, first)
      : this.#store(queries, FIRST_OUTCOMES, first))
    const updated = await this.#store(
      queries,
      LATER_OUTCOMES,
      inserted.length < first.length ? without(acks, inserted) : later,
    )
    return [...inserted, ...updated]
  }

  /** Whether the delivery had probably no row before. */
  #isFirst({ attempts, handler }: HandlerAck): boolean {
    return attempts === 1 && bitOf(handler) !== 0 && this.configured.isOrdered(handler)
  }

  async #insert(queries: Queries, acks: readonly HandlerAck[]): Promise<readonly HandlerAck[]> {
    if (acks.length > 0) await queries.change(NEW_OUTCOMES, columnsOf(acks))
    return acks
  }

  /** @returns those whose rows the statement wrote. */
  async #store(
    queries: Queries,
    statement: string,
    acks: readonly HandlerAck[],
  ): Promise<readonly HandlerAck[]> {
    if (acks.length === 0) return acks
    const [row] = await queries.rows<{ part: string | null }>(statement, [...columnsOf(acks), acks.length])
    if (row?.part === null) return acks
    const part = new Set(row?.part.split(','))
    return acks.filter(({ pos, handler }) => part.has(`${pos} ${handler}`))
  }

  async #shrink(queries: Queries, lanes: readonly [id: number, progress: Progress][]): Promise<void> {
    const ids = lanes.map(([id]) => id)
    // Locks the lanes in the order of `BY_KEY`, as a transaction of another process with facts does. Without `+ 0`, the server
    // may walk the index of this order, which has all lanes.
    if (ids.length > 1)
      await queries.rows(
        `SELECT FROM sidecar.lanes WHERE id = ANY ($1::bigint[]) ORDER BY handler + 0, key FOR UPDATE`,
        [ids],
      )
    const shrunk = await queries.rows<{ id: number }>(
      `UPDATE sidecar.lanes l SET pending = l.pending - g.ended, due_at = coalesce(g.due_at, l.due_at),
         fresh = CASE WHEN g.reached - l.fresh < ${BEHIND} THEN l.fresh
           WHEN l.pending - g.ended <= ${FEW} AND l.pending - g.ended = ${FRESH_AHEAD} THEN g.reached
           ELSE coalesce(sidecar.first_fresh(l, g.reached), g.reached) END
       FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) AS g(id, ended, reached, due_at) WHERE l.id = g.id
       RETURNING l.id`,
      [
        ids,
        lanes.map(([, { ended }]) => ended.length),
        lanes.map(([, { reached }]) => reached),
        lanes.map(([, { dueAt }]) => dueAt),
      ],
    )
    if (shrunk.length === lanes.length) return
    const known = new Set(shrunk.map(({ id }) => id))
    await this.#shrinkOthers(
      queries,
      lanes.flatMap(([id, progress]) => (known.has(id) ? [] : [progress])),
    )
  }

  /**
   * A newer replica has the handler as ordered: it moved pending deliveries, whose attempts this process had under way, into
   * the lanes of their sessions.
   */
  async #shrinkOthers(queries: Queries, moved: readonly Progress[]): Promise<void> {
    const ended = moved.flatMap((progress) => progress.ended.map((pos) => ({ pos, ...progress })))
    if (ended.length === 0) return
    await queries.change(
      `UPDATE sidecar.lanes l SET pending = l.pending - g.ended
       FROM (SELECT d.lane, count(*) AS ended FROM unnest($1::bigint[], $2::int[]) AS e(pos, handler)
         JOIN sidecar.delivery_rows d ON d.fact_pos = e.pos AND d.handler = e.handler GROUP BY d.lane) g
       WHERE l.id = g.lane`,
      [ended.map(({ pos }) => pos), ended.map(({ handler }) => handler)],
    )
  }
}

/**
 * By position. A statement changes a row only once: two outcomes of one delivery in one commit need two statements.
 */
function roundsOf(acks: readonly HandlerAck[]): HandlerAck[][] {
  const rounds: HandlerAck[][] = []
  let round = 0
  let before: HandlerAck | null = null
  for (const ack of acks.toSorted((a, b) => a.pos - b.pos || a.handler - b.handler)) {
    round = before?.pos === ack.pos && before.handler === ack.handler ? round + 1 : 0
    before = ack
    const list = rounds[round]
    if (list === undefined) rounds.push([ack])
    else list.push(ack)
  }
  return rounds
}

/** The parameters of `OUTCOMES`. */
function columnsOf(acks: readonly HandlerAck[]): Value[] {
  return [
    acks.map(({ pos }) => pos),
    acks.map(({ handler }) => handler),
    acks.map(({ lane }) => lane.id),
    acks.map(({ result }) => STATUS[result]),
    acks.map(({ attempts }) => attempts),
    acks.map(({ attempt }) => attemptText(attempt)),
    sparse(acks.map(({ attempt }) => attempt.answer ?? null)),
  ]
}

/** Adds to `lanes` what follows from `acks`, of which `recorded` were stored. */
function note(
  lanes: Map<number, Progress>,
  acks: readonly HandlerAck[],
  recorded: readonly HandlerAck[],
): void {
  for (const { lane, handler, pos } of acks) {
    let of = lanes.get(lane.id)
    if (of === undefined) lanes.set(lane.id, (of = { handler, ended: [], reached: 0, dueAt: null }))
    of.reached = Math.max(of.reached, pos + 1)
  }
  for (const { lane, pos, result } of recorded) if (result !== 'retry') lanes.get(lane.id)?.ended.push(pos)
}

function without(acks: readonly HandlerAck[], some: readonly HandlerAck[]): HandlerAck[] {
  const left = new Set(acks)
  for (const ack of some) left.delete(ack)
  return [...left]
}

function placesOf(additions: readonly Addition<Fact>[]): [number[], string[], number[]] {
  return [
    additions.map(({ handler }) => handler.number),
    additions.map(({ key }) => key),
    additions.map(({ key, facts: [first] }) => shardOfLane(first, key)),
  ]
}

/** An unordered handler has a lane for each fact: it is in the shard of the fact's session. */
export function shardOfLane(first: Fact | undefined, key: string): number {
  return placeOf(first?.sessionId ?? key)
}

/** The most lanes that one transaction moves. A move of 800,000 lanes exceeded the time limit of a statement. */
const GATHERED = 100_000

/**
 * Each pending fact of an unordered handler has a lane of its own. When the handler becomes ordered, these facts must move to
 * the lanes of their sessions, or they would be delivered in any order.
 * @returns whether the part was full, so that another one follows. A replica with an older configuration adds such lanes at
 * any time, so the first part that is not full is the last one.
 */
export async function gatherLanes(queries: Queries, handler: number): Promise<boolean> {
  // The key of a fact's own lane is the fact's id (`evt_…`).
  const old = await queries.rows<{ id: number }>(
    `SELECT l.id FROM sidecar.lanes l WHERE handler = $1 AND key >= 'evt_' AND key < 'evt\`'
       AND EXISTS (SELECT 1 FROM sidecar.facts f WHERE f.id = l.key) ORDER BY l.id LIMIT ${GATHERED}`,
    [handler],
  )
  if (old.length === 0) return false
  const ids = old.map(({ id }) => id)
  // A wait before the retry of one fact becomes a wait of its session's lane.
  await queries.change(
    `INSERT INTO sidecar.lanes AS lane (handler, key, shard, pending, due_at, fresh)
       SELECT l.handler, coalesce(f.session_id, ''), min(CASE WHEN f.session_id IS NULL THEN ${LEADER} ELSE l.shard END),
         count(*), max(l.due_at), min(f.pos) FROM sidecar.lanes l
       JOIN sidecar.delivery_rows d ON d.lane = l.id AND d.status = 0 JOIN sidecar.facts f ON f.pos = d.fact_pos
       WHERE l.id = ANY ($1::bigint[]) GROUP BY 1, 2
     ON CONFLICT (handler, key) DO UPDATE SET pending = lane.pending + excluded.pending,
       due_at = greatest(lane.due_at, excluded.due_at)`,
    [ids],
  )
  await queries.change(
    `UPDATE sidecar.delivery_rows d SET lane = l.id FROM sidecar.facts f, sidecar.lanes l
     WHERE d.status = 0 AND d.lane = ANY ($1::bigint[]) AND f.pos = d.fact_pos
       AND l.handler = d.handler AND l.key = coalesce(f.session_id, '')`,
    [ids],
  )
  await queries.change('DELETE FROM sidecar.lanes WHERE id = ANY ($1::bigint[])', [ids])
  return ids.length === GATHERED
}
