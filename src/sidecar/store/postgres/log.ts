import { PRUNED_SEQ } from '../../../core/checkpoint.ts'
import type { Channel, Fact, Seen, StoredFact } from '../../../core/fact.ts'
import type { CheckpointMove, Committed } from '../../../core/store.ts'
import { checksum, seqOf } from '../sqlite/log.ts'
import type { Queries, Value } from './database.ts'
import type { Admission } from './ownership.ts'
import { sparse } from './text.ts'

/** Named positions up to which work is done: the cursor of the stream, the sweep, the pruning. */
export const checkpoints = {
  async get(queries: Queries, name: string): Promise<string | null> {
    const [row] = await queries.rows<{ value: string | null }>(
      'SELECT value FROM sidecar.checkpoints WHERE name = $1',
      [name],
    )
    return row?.value ?? null
  },

  async set(queries: Queries, name: string, value: string | null): Promise<void> {
    await queries.change(
      `INSERT INTO sidecar.checkpoints (name, value) VALUES ($1, $2)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      [name, value],
    )
  },

  /** @returns false when its value is not `from`. */
  async move(queries: Queries, { name, to, from }: CheckpointMove): Promise<boolean> {
    if (from === undefined) {
      await this.set(queries, name, to)
      return true
    }
    const moved =
      from === null
        ? queries.change(
            `INSERT INTO sidecar.checkpoints AS c (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE c.value IS NULL`,
            [name, to],
          )
        : queries.change('UPDATE sidecar.checkpoints SET value = $2 WHERE name = $1 AND value = $3', [
            name,
            to,
            from,
          ])
    return (await moved) === 1
  },

  async drop(queries: Queries, name: string): Promise<void> {
    await queries.change('DELETE FROM sidecar.checkpoints WHERE name = $1', [name])
  },

  /** Moves the cursor of the stream. It never moves back. */
  async advance(queries: Queries, cursor: string): Promise<void> {
    await queries.change(
      `INSERT INTO sidecar.checkpoints AS c (name, value) VALUES ('stream', $1) ${onlyForward(2)}`,
      [cursor, wholeOf(cursor)],
    )
  },
}

/**
 * A cursor that is no number cannot be compared: the newest wins. `parameter`: the number of the one with the result of
 * `wholeOf`.
 */
function onlyForward(parameter: number): string {
  return `ON CONFLICT (name) DO UPDATE SET value = excluded.value
    WHERE $${parameter}::numeric IS NULL OR c.value IS NULL OR c.value !~ '^[0-9]{1,40}$' OR c.value::numeric < $${parameter}::numeric`
}

function wholeOf(cursor: string | null): string | null {
  return seqOf(cursor) === null ? null : cursor
}

/** Adds the pending deliveries of new facts to their lanes. */
export const EXTEND = `ON CONFLICT (handler, key) DO UPDATE SET pending = l.pending + excluded.pending,
    due_at = CASE WHEN l.pending = 0 THEN 0 ELSE l.due_at END,
    fresh = CASE WHEN l.pending = 0 THEN excluded.fresh ELSE l.fresh END
  RETURNING id, handler, key, pending`

/** A lane that facts were added to. */
export interface ExtendedLane {
  id: number
  handler: number
  key: string
  /** Its pending deliveries, with those that were added. */
  pending: number
}

/** The lanes of the session of one fact: all have the same key. */
export interface SessionLanes {
  /** In the order in which their lanes are locked. */
  handlers: readonly number[]
  key: string
  shard: number
}

/** Makes the deliveries of facts that are new. */
interface Fan {
  /** null: a handler has a lane for each fact. */
  lanesOf(fact: Fact): SessionLanes | null
  extend(queries: Queries, facts: readonly Fact[]): Promise<ExtendedLane[]> | null
  fanOut(
    queries: Queries,
    facts: readonly StoredFact[],
    extended: readonly ExtendedLane[] | null,
    into: Committed,
  ): Promise<void>
  /** `wanted`: the bits of `facts.wanted` for a fact of this type, one for each handler that selects it. */
  readonly configured: { wanted(type: string): number }
}

/** The fact of a frame, with its position in the stream and the lanes that get it. */
export interface Frame {
  fact: Fact
  cursor: string | null
  lanes: SessionLanes
}

interface NumberedFrame extends Frame {
  /** The seq, if it is a whole number; otherwise null. */
  number: string | null
}

const INTO = `INSERT INTO sidecar.facts (pos, id, type, session_id, turn_id, at, family, seq, body, subject, seen_stream, seen_webhook,
    seen_poll, checksum, wanted)`
const PRUNED = `coalesce((SELECT value::numeric FROM sidecar.checkpoints WHERE name = '${PRUNED_SEQ}'), -1)`

/** Draws a position for each of $1 facts. */
const DRAWN = `drawn AS (UPDATE sidecar.positions SET last = last + $1::bigint WHERE name = 'facts' RETURNING last - $1::bigint AS base)`
/**
 * The functions are in the list of the SELECT: after FROM, the server would copy each of the columns of a row before it
 * reads them.
 */
const GIVEN = `SELECT drawn.base + f.nth, f.id, f.type, f.session_id, f.turn_id, f.at, f.family, f.seq, f.body, f.subject, f.seen_stream,
    f.seen_webhook, f.seen_poll, f.checksum, f.wanted
  FROM drawn, (SELECT generate_series(1, $1::bigint) AS nth, unnest($2::text[]) AS id, unnest($3::text[]) AS type,
    unnest($4::text[]) AS session_id, unnest($5::text[]) AS turn_id, unnest($6::bigint[]) AS at, unnest($7::text[]) AS family,
    unnest($8::text[]) AS seq, unnest($9::text[]) AS body, unnest($10::text[]) AS subject, unnest($11::bigint[]) AS seen_stream,
    unnest($12::bigint[]) AS seen_webhook, unnest($13::bigint[]) AS seen_poll, unnest($14::bigint[]) AS checksum,
    unnest($15::int[]) AS wanted`

/**
 * Adds the facts that are new. `ON CONFLICT` would check each id too, but then the server writes a second record to its log
 * for each row. Transactions that add facts run one after the other, so no other one adds an id after the check.
 */
const ADD = `WITH ${DRAWN}, added AS (${INTO} ${GIVEN}, unnest($16::text[]) AS number) f
  WHERE (SELECT old.pos FROM sidecar.facts old WHERE old.id = f.id) IS NULL AND (f.number IS NULL OR f.number::numeric > ${PRUNED})
  RETURNING pos)
  SELECT base, CASE WHEN (SELECT count(*) FROM added) < $1::bigint
    THEN coalesce((SELECT string_agg((added.pos - base - 1)::text, ',' ORDER BY added.pos) FROM added), '-1') END AS part
  FROM drawn`

/**
 * Adds frames that are all new, and fails if one is not. In a burst this takes the server a quarter less than `ADD`. $16 is the lowest
 * number of the frames: if it may have been removed long ago, none is added.
 */
const ADD_NEW = `WITH ${DRAWN}, added AS (${INTO} ${GIVEN}) f WHERE $16::numeric > ${PRUNED})
  SELECT base, $16::numeric > ${PRUNED} AS "areAdded" FROM drawn`

/**
 * When 200 frames a second come one by one, each is added alone. For a single fact, this statement and its plan are
 * simpler than `ADD`, and its commit takes 0.2 ms less. It moves the cursor too. It returns a row for each lane, and
 * one row without a lane where there is none.
 */
function addOne({ conflict = '', isAdmitted = 'true' } = {}): string {
  return `
  WITH drawn AS (UPDATE sidecar.positions SET last = last + 1 WHERE name = 'facts' AND ${isAdmitted} RETURNING last),
  added AS (${INTO}
  SELECT last, $1, $2, $3, $4, $5::bigint, $6, $7, $8, $9, $10::bigint, $11::bigint, $12::bigint, $13::bigint, $14::int FROM drawn
  WHERE $15::text IS NULL OR $15::numeric > ${PRUNED}
  ${conflict}
  RETURNING pos),
  extended AS (INSERT INTO sidecar.lanes AS l (handler, key, shard, pending, fresh, due_at)
  SELECT handler, $17, $18::smallint, 1, added.pos, 0 FROM added, unnest($16::int[]) WITH ORDINALITY AS h(handler, nth) ORDER BY nth ${EXTEND}),
  moved AS (INSERT INTO sidecar.checkpoints AS c (name, value) SELECT 'stream', $19::text WHERE $19::text IS NOT NULL ${onlyForward(20)})
  SELECT added.pos, extended.id, extended.handler, extended.key, extended.pending FROM added LEFT JOIN extended ON true`
}

const ADD_ONE = addOne({ conflict: 'ON CONFLICT (id) DO NOTHING' })
/** Fails if the fact is there. */
const ADD_ONE_NEW = addOne()
/**
 * As `ADD_ONE_NEW`, and checks the fence, before it draws a position. It sees only what was committed before it waits for the
 * locks. That suffices: it finds rows by unique indexes, and reads only `PRUNED`, which the same process changes.
 */
const ADD_ALONE = addOne({
  isAdmitted: "(SELECT sidecar.admit($21, $22::bigint, 'lanes', true)) IS NOT NULL",
})

/**
 * The log of facts: removes duplicates by id, and records which channel reported a fact first. Everything but `appendAlone` runs
 * inside a transaction of the caller.
 */
export class Facts {
  readonly #fan: Fan

  constructor(fan: Fan) {
    this.#fan = fan
  }

  /** Adds those of `facts` that are new, in order, and their deliveries. */
  async append(queries: Queries, facts: readonly Fact[], into: Committed): Promise<void> {
    await this.#add(queries, firsts(facts), numberOf, into)
  }

  /** As `append`, for frames that are nearly always new. It fails if one is there. */
  async appendNew(queries: Queries, given: readonly Fact[], into: Committed): Promise<void> {
    const facts = firsts(given)
    const lowest = lowestOf(facts)
    if (lowest === null || facts.length === 1) return await this.append(queries, facts, into)
    const seen = facts.map((fact) => fact.seen)
    const adding = queries.rows<{ base: number; areAdded: boolean }>(ADD_NEW, [
      ...this.#columnsOf(facts, seen),
      String(lowest),
    ])
    const [[row], extended] = await Promise.all([adding, this.#fan.extend(queries, facts)])
    if (row === undefined) throw new Error('no positions were drawn')
    if (!row.areAdded) return await this.append(queries, facts, into)
    const added = facts.map((fact, index) => ({ ...fact, pos: row.base + index + 1 }))
    await this.#added(queries, added, extended, into)
  }

  /**
   * Adds a frame that came alone, and moves the cursor, in one statement, which is sent before this returns. `optimistic`: it
   * fails if the frame is there.
   */
  async appendFrame(queries: Queries, frame: Frame, into: Committed, optimistic: boolean): Promise<void> {
    const text = optimistic ? ADD_ONE_NEW : ADD_ONE
    await this.#addOne(queries, { ...frame, number: numberOf(frame.fact) }, into, { text })
  }

  /** As `appendFrame`, as a transaction by itself. It fails if the frame is there. */
  async appendAlone(
    queries: Queries,
    frame: Frame,
    into: Committed,
    { me, number }: Admission,
  ): Promise<void> {
    const statement = { text: ADD_ALONE, more: [me, number] }
    await this.#addOne(queries, { ...frame, number: numberOf(frame.fact) }, into, statement)
  }

  /** Leaves out frames that were delivered and removed long ago: a service that replays everything sends them again. */
  async unpruned(queries: Queries, facts: readonly Fact[]): Promise<readonly Fact[]> {
    if (facts.every(({ seq }) => seq === null)) return facts
    const pruned = seqOf(await checkpoints.get(queries, PRUNED_SEQ))
    if (pruned === null) return facts
    return facts.filter(({ seq }) => seq === null || (seqOf(seq) ?? pruned + 1n) > pruned)
  }

  /**
   * As `append`, for frames that were held. Later frames may have been delivered and removed meanwhile, so a low seq is
   * no reason to leave one out.
   */
  async release(queries: Queries, facts: readonly Fact[], into: Committed): Promise<void> {
    await this.#add(queries, firsts(facts), () => null, into)
  }

  /**
   * Leaves out facts whose number is not above that of the newest fact that was removed. `facts` have different ids.
   */
  async #add(
    queries: Queries,
    facts: readonly Fact[],
    toNumber: (fact: Fact) => string | null,
    into: Committed,
  ): Promise<void> {
    if (facts.length === 0) return
    const seen = await this.#seenBefore(queries, facts)
    const [only] = facts
    if (facts.length === 1 && only !== undefined) {
      const lanes = this.#fan.lanesOf(only)
      if (lanes !== null) {
        const fact = { ...only, seen: seen[0] ?? only.seen }
        return await this.#addOne(queries, { fact, number: toNumber(only), lanes, cursor: null }, into, {
          text: ADD_ONE,
        })
      }
    }
    const adding = queries.rows<{ base: number; part: string | null }>(ADD, [
      ...this.#columnsOf(facts, seen),
      sparse(facts.map(toNumber)),
    ])
    const [[row], extended] = await Promise.all([adding, this.#fan.extend(queries, facts)])
    if (row === undefined) throw new Error('no positions were drawn')
    const places = row.part?.split(',').map(Number) ?? facts.keys()
    const added: StoredFact[] = []
    for (const place of places) {
      const fact = facts[place]
      if (fact !== undefined)
        added.push({ ...fact, pos: row.base + place + 1, seen: seen[place] ?? fact.seen })
    }
    await this.#added(queries, added, extended, into)
  }

  /** The first 15 parameters of `ADD` and `ADD_NEW`. */
  #columnsOf(facts: readonly Fact[], seen: readonly Seen[]): Value[] {
    return [
      facts.length,
      facts.map(({ id }) => id),
      facts.map(({ type }) => type),
      sparse(facts.map(({ sessionId }) => sessionId)),
      sparse(facts.map(({ turnId }) => turnId)),
      facts.map(({ at }) => at),
      facts.map(({ family }) => family),
      sparse(facts.map(({ seq }) => seq)),
      facts.map(({ body }) => body),
      sparse(facts.map(({ subject }) => subject)),
      sparse(seen.map(({ stream }) => stream ?? null)),
      sparse(seen.map(({ webhook }) => webhook ?? null)),
      sparse(seen.map(({ poll }) => poll ?? null)),
      facts.map(checksum),
      facts.map(({ type }) => this.#fan.configured.wanted(type)),
    ]
  }

  async #addOne(
    queries: Queries,
    { fact, number, lanes, cursor }: NumberedFrame,
    into: Committed,
    { text, more = [] }: { text: string; more?: readonly Value[] },
  ): Promise<void> {
    const { id, type, sessionId, turnId, at, family, seq, body, subject, seen } = fact
    const rows = await queries.rows<{ pos: number } & (ExtendedLane | { id: null })>(text, [
      id,
      type,
      sessionId,
      turnId,
      at,
      family,
      seq,
      body,
      subject,
      seen.stream ?? null,
      seen.webhook ?? null,
      seen.poll ?? null,
      checksum(fact),
      this.#fan.configured.wanted(type),
      number,
      lanes.handlers,
      lanes.key,
      lanes.shard,
      cursor,
      wholeOf(cursor),
      ...more,
    ])
    const [first] = rows
    if (first === undefined) return
    const extended = rows.flatMap((row) => (row.id === null ? [] : row))
    await this.#added(queries, [{ ...fact, pos: first.pos }], extended, into)
  }

  /** Reports new facts in `into`, and makes their deliveries. */
  async #added(
    queries: Queries,
    added: readonly StoredFact[],
    extended: readonly ExtendedLane[] | null,
    into: Committed,
  ): Promise<void> {
    if (added.length === 0) return
    const subjects = added.flatMap(({ subject }) => subject ?? [])
    if (subjects.length > 0)
      await queries.change('DELETE FROM sidecar.sightings WHERE subject = ANY ($1::text[])', [subjects])
    for (const fact of added) into.facts.push(fact)
    await this.#fan.fanOut(queries, added, extended, into)
  }

  /** The sightings of the subjects of `facts` before the facts came, in the order of `facts`. */
  async #seenBefore(queries: Queries, facts: readonly Fact[]): Promise<Seen[]> {
    const subjects = facts.flatMap(({ subject }) => subject ?? [])
    const rows =
      subjects.length === 0
        ? []
        : await queries.rows<{ subject: string; channel: Channel; at: number }>(
            'SELECT subject, channel, at FROM sidecar.sightings WHERE subject = ANY ($1::text[])',
            [subjects],
          )
    // If two facts of this commit have the same subject, the first of them gets the sightings.
    const given = new Set<string>()
    return facts.map((fact) => {
      const { subject } = fact
      if (subject === null || given.has(subject)) return fact.seen
      given.add(subject)
      const seen = { ...fact.seen }
      for (const { channel, at } of rows.filter((row) => row.subject === subject))
        seen[channel] = Math.min(at, seen[channel] ?? at)
      return seen
    })
  }

  /** A channel reports that `subject` happened: stored with the fact, or for the fact to come. */
  async sight(
    queries: Queries,
    { subject, channel, at }: { subject: string; channel: Channel; at: number },
    into: Committed,
  ): Promise<void> {
    const [fact] = await queries.rows<{ pos: number; type: string; at: number; seen: number | null }>(
      `SELECT pos, type, at, seen_${channel} AS seen FROM sidecar.facts WHERE subject = $1 ORDER BY pos DESC LIMIT 1`,
      [subject],
    )
    if (fact !== undefined && fact.seen === null) {
      await queries.change(`UPDATE sidecar.facts SET seen_${channel} = $1 WHERE pos = $2`, [at, fact.pos])
      into.sightings.push({ channel, type: fact.type, at, factAt: fact.at })
      return
    }
    // A session returns to the same status again and again; everything else happens once.
    if (fact === undefined || /^session\.(?!created|deleted)/.test(subject))
      await queries.change(
        'INSERT INTO sidecar.sightings (subject, channel, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
        [subject, channel, at],
      )
  }
}

/** null: the seq of one of them is no whole number. */
function lowestOf(facts: readonly Fact[]): bigint | null {
  let lowest: bigint | null = null
  for (const { seq } of facts) {
    const number = seqOf(seq)
    if (number === null) return null
    if (lowest === null || number < lowest) lowest = number
  }
  return lowest
}

function numberOf({ seq }: Fact): string | null {
  return seqOf(seq) === null ? null : seq
}

/** A service may send a frame twice within one batch. */
function firsts(facts: readonly Fact[]): readonly Fact[] {
  const ids = new Set(facts.map(({ id }) => id))
  return ids.size === facts.length ? facts : facts.filter(({ id }) => ids.delete(id))
}
