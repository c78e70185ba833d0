import { ANY_FUNCTION, TOOL_NAME } from '../../../core/tool.ts'
import type { StoreCounts } from '../../../core/counts.ts'
import { parseDeliveryId } from '../../../core/delivery.ts'
import { streamFactIds, type StoredFact } from '../../../core/fact.ts'
import { DELETED, type OpenFunction, type StoreReader } from '../../../core/store-reader.ts'
import { CALL, callOf, type CallRow } from '../sqlite/calls.ts'
import { deliveryOf, STATUSES, stuckOf, type DeliveryRow } from '../sqlite/deliveries.ts'
import { createListing, list, mapListed, NOTHING } from '../sqlite/listing.ts'
import { FACT_COLUMNS, factOf, type FactRow } from '../sqlite/log.ts'
import { pageOf, recordOf, SEARCHED, SHOWN_PER_SESSION, sizeOfCall, sizeOfRaw } from '../sqlite/reader.ts'
import type { SessionRow } from '../sqlite/sessions.ts'
import { listActions, listTurns, type ActionRow, type TurnRow } from '../sqlite/waiting.ts'
import type { Clock } from '../../../std/ports.ts'
import { keepCounts } from '../keeping.ts'
import { boundBodies, OCTETS } from './bodies.ts'
import { where } from './conditions.ts'
import type { Queries } from './database.ts'
import type { Lanes } from './lanes.ts'
import { SESSION_COLUMNS } from './sessions.ts'
import { isBefore } from '../../../core/seq.ts'

const selectFrom = (
  from: string,
): string => `SELECT d.fact_pos, d.handler, h.name AS handler_name, d.status, d.log, d.answer, l.due_at, f.id, f.type, f.session_id
  FROM ${from} d JOIN sidecar.facts f ON f.pos = d.fact_pos JOIN sidecar.handlers h ON h.number = d.handler
  LEFT JOIN sidecar.lanes l ON l.id = d.lane`
const DELIVERY = selectFrom('sidecar.deliveries')
const ROW = selectFrom('sidecar.delivery_rows')
const FRESH = selectFrom(`(SELECT *, 0 AS status, '' AS log, NULL AS answer FROM sidecar.fresh_deliveries)`)
const STUCK = stuckOf('sidecar.', '$1::text')
/** In a backlog of more deliveries, those without a row are found by a walk through the facts. */
const LONG = 10_000
/** So many facts are read by the first statement of a walk, and at most so many by a later one: each ends in time. */
const STRETCH = { first: 256, most: 65_536 }
/**
 * The page of a million deliveries took longer than a statement may, because FRESH joins and sorts all of them. This finds
 * those of a part of the facts. `facts`: the condition on facts, whose first two values are the ends of the part.
 */
const walkThrough = (facts: string): string => `SELECT * FROM (
    SELECT f.pos AS fact_pos, h.number AS handler, h.name AS handler_name, 0 AS status, '' AS log, NULL AS answer, l.due_at,
      f.id, f.type, f.session_id
    FROM (SELECT * FROM sidecar.facts ${facts}) f
    JOIN sidecar.handlers h ON h.number <= 30 AND f.wanted >> h.number & 1 = 1
    JOIN sidecar.lanes l ON l.handler = h.number AND l.key = coalesce(f.session_id, '') AND f.pos >= l.fresh AND l.pending > 0
    WHERE NOT EXISTS (SELECT 1 FROM sidecar.delivery_rows r
      WHERE r.fact_pos = f.pos AND r.handler = h.number AND r.fact_pos BETWEEN $1::bigint AND $2::bigint)) d`
const OPEN_SINCE = 'coalesce(a.created_at, a.opened_at)'
const OPEN = `FROM sidecar.actions a JOIN sidecar.sessions s ON s.id = a.session_id
  WHERE a.resolved_at IS NULL AND s.deleted_at IS NULL`
/** The most frames of one query, and about how many characters: this limits the memory for a slow reader. */
const FRAMES = 2048
const CHARACTERS = 256 * 1024

/**
 * Reads for people and metrics. If the row that a page should continue after is not known, the page is empty, as with
 * the service itself.
 */
export function createReader(
  queries: Queries,
  people: Queries,
  { lanes, clock }: { lanes: Lanes; clock: Clock },
): StoreReader {
  return {
    ...createFrames(queries),
    ...createFacts(people),
    ...createDeliveries(people, lanes),
    ...createSessions(people),
    ...createWaiting(people),
    handlers: () => lanes.handlers(queries),
    counts: keepCounts(clock, () => count(people), COUNTS_KEPT),
  }
}

async function first<R>(queries: Queries, text: string, values: readonly string[]): Promise<R | null> {
  const [row] = await queries.rows<R>(text, values)
  return row ?? null
}

function createFacts(queries: Queries): Pick<StoreReader, 'facts'> {
  return {
    async facts({ after, limit, order, type, sessionId }) {
      let start =
        after === undefined
          ? undefined
          : await first<{ pos: number }>(queries, 'SELECT pos FROM sidecar.facts WHERE id = $1', [after])
      if (start === null) return NOTHING
      const listing = createListing<StoredFact>(limit, ({ body }) => body.length)
      for (;;) {
        const { text, values } = where([
          [`f.pos ${order === 'asc' ? '>' : '<'} ?::bigint`, start?.pos],
          ['f.type = ?', type],
          ["coalesce(f.session_id, '') = ?", sessionId],
        ])
        const rows: FactRow[] = await queries.rows(
          `SELECT ${FACT_COLUMNS} FROM sidecar.facts f ${text} ORDER BY f.pos ${order === 'asc' ? 'ASC' : 'DESC'} LIMIT ${limit + 1}`,
          values,
        )
        for (const row of rows) {
          // A damaged fact is left out, and the next one takes its place.
          const fact = factOf(row)
          if (fact !== null && !listing.add(fact)) return listing.listed()
        }
        if (rows.length <= limit) return listing.listed()
        start = rows.at(-1)
      }
    },
  }
}

/** Frames for the readers of the relay. */
function createFrames(queries: Queries): Pick<StoreReader, 'placeOf' | 'frames'> {
  const ends = async (): Promise<{ low: number | null; high: number | null }> =>
    (await first(queries, 'SELECT min(pos) AS low, max(pos) AS high FROM sidecar.facts', [])) ?? {
      low: null,
      high: null,
    }
  return {
    async placeOf(seq) {
      const { from, to } = streamFactIds(seq)
      const [stored] = await queries.rows<{ pos: number }>(
        'SELECT pos FROM sidecar.facts WHERE id >= $1 AND id < $2 AND seq = $3',
        [from, to, seq],
      )
      if (stored !== undefined) return { pos: stored.pos, stored: true }
      const { low: lowest, high: highest } = await ends()
      if (lowest === null || highest === null) return { pos: 0, stored: false }
      let [low, high] = [lowest - 1, highest]
      while (low < high) {
        const middle = Math.ceil((low + high) / 2)
        const [frame] = await queries.rows<{ pos: number; seq: string }>(
          'SELECT pos, seq FROM sidecar.facts WHERE pos >= $1::bigint AND seq IS NOT NULL ORDER BY pos LIMIT 1',
          [middle],
        )
        if (frame === undefined || isBefore(seq, frame.seq)) high = middle - 1
        else low = frame.pos
      }
      return { pos: low, stored: false }
    },
    async frames({ after, sessionId }) {
      const last = (await ends()).high ?? 0
      const { text, values } = where([
        ['f.pos > ?::bigint', after],
        ['f.pos <= ?::bigint', last],
        ["coalesce(f.session_id, '') = ?", sessionId],
      ])
      const select = `SELECT ${FACT_COLUMNS} FROM sidecar.facts f ${text} ORDER BY f.pos LIMIT ${FRAMES}`
      const bound = CHARACTERS * OCTETS
      const rows = await queries.rows<FactRow & { octets: number }>(boundBodies(select, bound), values)
      const frames: StoredFact[] = []
      let characters = 0
      for (const row of rows) {
        const fact = row.seq === null ? null : factOf(row)
        if (fact === null) continue
        frames.push(fact)
        characters += fact.body.length
        if (characters >= CHARACTERS) return { frames, next: row.pos, more: true }
      }
      const more = rows.length === FRAMES || (rows.at(-1)?.octets ?? 0) >= bound
      return { frames, next: more ? (rows.at(-1)?.pos ?? after) : Math.max(after, last), more }
    },
  }
}

function createDeliveries(
  queries: Queries,
  lanes: Lanes,
): Pick<StoreReader, 'deliveries' | 'delivery' | 'stuck'> {
  const find = async (id: string): Promise<DeliveryRow | null> => {
    const key = parseDeliveryId(id)
    if (key === null) return null
    const [row] = await queries.rows<DeliveryRow>(
      `${DELIVERY} WHERE d.fact_pos = $1::bigint AND d.handler = $2::int`,
      [key.pos, key.handlerNumber],
    )
    return row ?? null
  }
  /** Where deliveries without a row can be: the bits of their handlers in `wanted`, and the first and last position. */
  const placesOf = async (handler: number | undefined) => {
    const { text, values } = where([['handler = ?', handler]])
    const [row] = await queries.rows<{ bits: number; low: number; high: number; pending: number }>(
      `SELECT coalesce(bit_or(1 << handler), 0) AS bits, coalesce(min(fresh), 0) AS low,
         (SELECT coalesce(max(pos), 0) FROM sidecar.facts) AS high, coalesce(sum(pending), 0)::bigint AS pending
       FROM (SELECT * FROM sidecar.lanes WHERE pending > 0 AND handler <= 30) l ${text}`,
      values,
    )
    return row ?? { bits: 0, low: 0, high: 0, pending: 0 }
  }
  return {
    async deliveries({ after, limit, status, handler, factId, sessionId, since }) {
      const cursor = after === undefined ? undefined : await find(after)
      if (cursor === null) return NOTHING
      const number =
        handler === undefined
          ? undefined
          : ((await lanes.handlers(queries)).find(({ name }) => name === handler)?.number ?? null)
      if (number === null) return NOTHING
      const before = [
        '(d.fact_pos, d.handler) < (?::bigint, ?::int)',
        cursor?.fact_pos,
        cursor?.handler,
      ] as const
      const ofHandler = ['d.handler = ?', number] as const
      const { text, values } = where([
        before,
        ['d.status = ?', status === undefined ? undefined : STATUSES.indexOf(status)],
        ofHandler,
        ['f.id = ?', factId],
        ["coalesce(f.session_id, '') = ?", sessionId],
        ['f.at >= ?::bigint', since],
      ])
      const page = (select: string): Promise<DeliveryRow[]> =>
        queries.rows(`${select} ${text} ORDER BY d.fact_pos DESC, d.handler DESC LIMIT ${limit + 1}`, values)
      const rows = await page(ROW)

      /** The deliveries without a row that come before the last of `rows`. */
      const fresh = async (): Promise<DeliveryRow[]> => {
        const { bits, low, high, pending } = await placesOf(number)
        if (factId !== undefined || pending <= LONG) return await page(FRESH)
        const end = Math.max(low, rows[limit]?.fact_pos ?? 0)
        const found: DeliveryRow[] = []
        let last = cursor?.fact_pos ?? high
        for (let size = STRETCH.first; last >= end && found.length <= limit;) {
          const facts = where([
            ['pos BETWEEN ?::bigint AND ?::bigint', Math.max(end, last - size + 1), last],
            ['wanted & ?::int <> 0', bits],
            ["coalesce(session_id, '') = ?", sessionId],
            ['at >= ?::bigint', since],
          ])
          const outer = where([before, ofHandler], facts.values)
          const select = `${walkThrough(facts.text)} ${outer.text} ORDER BY d.fact_pos DESC, d.handler DESC LIMIT ${limit + 1}`
          found.push(...(await queries.rows<DeliveryRow>(select, outer.values)))
          last -= size
          size = Math.min(size * 4, STRETCH.most)
        }
        return found
      }
      if (status === undefined || status === 'pending') rows.push(...(await fresh()))
      rows.sort((a, b) => b.fact_pos - a.fact_pos || b.handler - a.handler)
      return mapListed(
        list(rows.slice(0, limit + 1), limit, ({ log, answer }) => log.length + (answer?.length ?? 0)),
        (row) => [deliveryOf(row)],
      )
    },
    async delivery(id) {
      const row = await find(id)
      return row === null ? null : deliveryOf(row)
    },
    async stuck(handler) {
      return (await queries.rows<DeliveryRow>(STUCK, [handler])).map(deliveryOf)
    },
  }
}

function createSessions(queries: Queries): Pick<StoreReader, 'sessions' | 'session' | 'calls'> {
  const sessionById = (id: string): Promise<SessionRow | null> =>
    first(queries, `SELECT ${SESSION_COLUMNS} FROM sidecar.sessions WHERE id = $1`, [id])
  return {
    async sessions({ after, limit, status, text: wanted }) {
      const last = after === undefined ? undefined : await sessionById(after)
      if (last === null) return NOTHING
      const exact = wanted === undefined ? null : await sessionById(wanted)
      const title = exact === null ? wanted : undefined
      const { text, values } = where([
        ['(first_seen, id) < (?::bigint, ?)', last?.first_seen, last?.id],
        // Sessions that left the scope are kept for their pending deliveries.
        [
          "NOT EXISTS (SELECT 1 FROM sidecar.session_owners o WHERE o.session_id = id AND o.owner = 'foreign')",
        ],
        ['status = ? AND deleted_at IS NULL', status === DELETED ? undefined : status],
        ['deleted_at IS NOT NULL', ...(status === DELETED ? [] : [undefined])],
        ['id = ?', exact?.id],
        ['position(lower(?) in lower(title)) > 0', title],
        [
          `first_seen >= coalesce((SELECT first_seen FROM sidecar.sessions ORDER BY first_seen DESC LIMIT 1 OFFSET ${SEARCHED}), 0)`,
          ...(title === undefined ? [undefined] : []),
        ],
      ])
      const rows = await queries.rows<SessionRow>(
        `SELECT ${SESSION_COLUMNS} FROM sidecar.sessions ${text} ORDER BY first_seen DESC, id DESC LIMIT ${limit + 1}`,
        values,
      )
      return mapListed(list(rows, limit, sizeOfRaw), (row) => [recordOf(row)])
    },
    async session(id) {
      const row = await sessionById(id)
      if (row === null) return null
      const turns = await queries.rows<{ raw: string }>(
        `SELECT raw FROM sidecar.turns WHERE session_id = $1 AND raw IS NOT NULL
         ORDER BY created_at DESC NULLS LAST LIMIT ${SHOWN_PER_SESSION}`,
        [id],
      )
      const actions = await queries.rows<{ raw: string }>(
        'SELECT raw FROM sidecar.actions WHERE session_id = $1 AND resolved_at IS NULL',
        [id],
      )
      const calls = await queries.rows<CallRow>(
        `SELECT ${CALL} FROM sidecar.calls WHERE session_id = $1 ORDER BY received_at DESC LIMIT ${SHOWN_PER_SESSION}`,
        [id],
      )
      return pageOf(row, { turns, actions, calls })
    },
    async calls({ after, limit, state, sessionId }) {
      const last =
        after === undefined
          ? undefined
          : await first<CallRow>(queries, `SELECT ${CALL} FROM sidecar.calls WHERE call_id = $1`, [after])
      if (last === null) return NOTHING
      const { text, values } = where([
        ['(received_at, call_id) < (?::bigint, ?)', last?.receivedAt, last?.callId],
        ['state = ?', state],
        ['session_id = ?', sessionId],
      ])
      const rows = await queries.rows<CallRow>(
        `SELECT ${CALL} FROM sidecar.calls ${text} ORDER BY received_at DESC, call_id DESC LIMIT ${limit + 1}`,
        values,
      )
      return mapListed(list(rows, limit, sizeOfCall), (row) => [callOf(row)])
    },
  }
}

/** Open turns and actions, which a person, an app or the service still has to finish; the oldest first. */
function createWaiting(queries: Queries): Pick<StoreReader, 'openTurns' | 'openActions' | 'functionsBeside'> {
  const placeIn = async (text: string, after: string | undefined): Promise<number | null> =>
    after === undefined ? -1 : ((await first<{ at: number }>(queries, text, [after]))?.at ?? null)
  return {
    async openTurns({ after, limit }) {
      const at = await placeIn('SELECT coalesce(created_at, 0) AS at FROM sidecar.turns WHERE id = $1', after)
      if (at === null) return NOTHING
      const rows = await queries.rows<TurnRow>(
        `SELECT t.raw, s.raw AS session FROM sidecar.turns t JOIN sidecar.sessions s ON s.id = t.session_id
         WHERE t.settled = 0 AND t.raw IS NOT NULL AND s.deleted_at IS NULL
           AND (coalesce(t.created_at, 0), t.id) > ($1::bigint, $2)
         ORDER BY coalesce(t.created_at, 0), t.id LIMIT ${limit + 1}`,
        [at, after ?? ''],
      )
      return listTurns(rows, limit)
    },
    async openActions({ after, limit }) {
      const at = await placeIn(
        `SELECT ${OPEN_SINCE} AS at FROM sidecar.actions a WHERE a.call_id = $1`,
        after,
      )
      if (at === null) return NOTHING
      const rows = await queries.rows<ActionRow>(
        `SELECT a.raw, a.opened_at, s.raw AS session ${OPEN} AND (${OPEN_SINCE}, a.call_id) > ($1::bigint, $2)
         ORDER BY ${OPEN_SINCE}, a.call_id LIMIT ${limit + 1}`,
        [at, after ?? ''],
      )
      return listActions(rows, limit)
    },
    functionsBeside: (tools, limit) =>
      queries.rows<OpenFunction>(
        `SELECT * FROM (
           SELECT left(a.name, 65) AS name, count(*) AS calls, min(${OPEN_SINCE}) AS oldest
           ${OPEN} AND a.type = 'function_call' GROUP BY 1) beside
         WHERE name IS NOT NULL AND name <> ALL ($1::text[])
           AND ('${ANY_FUNCTION}' <> ALL ($1::text[]) OR name !~ '${TOOL_NAME.source}') ORDER BY oldest, name COLLATE "C" LIMIT ${limit}`,
        [tools],
      ),
  }
}

/** How many lanes of a handler are searched for its oldest delivery. */
const LANES_SEARCHED = 1000
/**
 * The position of about the oldest pending delivery of the handler `h`: the oldest of the lanes with the lowest `fresh`. A
 * handler without an order has a lane for each fact, and there may be a million of them: `fresh` is its position. Where more
 * lanes of sessions wait, each delivery that failed has a row, and all are looked at. `+ 0`: from an index of positions, a
 * minimum is sought among the rows of all that was delivered.
 */
const OLDEST = `(
  SELECT least(min(CASE WHEN own THEN fresh ELSE least(sidecar.first_fresh(lane, ${Number.MAX_SAFE_INTEGER}),
      (SELECT min(d.fact_pos) FROM sidecar.delivery_rows d WHERE d.lane = id AND d.status = 0)) END),
    CASE WHEN count(*) = ${LANES_SEARCHED} AND bool_or(NOT own)
    THEN (SELECT min(d.fact_pos + 0) FROM sidecar.delivery_rows d WHERE d.handler = h.number AND d.status = 0) END)
  FROM (SELECT l AS lane, l.id, l.fresh, coalesce((SELECT f.id FROM sidecar.facts f WHERE f.pos = l.fresh) = l.key, false) AS own
    FROM sidecar.lanes l WHERE l.handler = h.number AND l.pending > 0 ORDER BY l.fresh LIMIT ${LANES_SEARCHED}) searched)`
/** How long counts are used, milliseconds. A short one may have waited for a new connection. */
const COUNTS_KEPT = { short: 250, longest: 10_000 }

/** Counts the contents of the store for metrics and status. */
async function count(queries: Queries): Promise<StoreCounts> {
  const handlers = await queries.rows<{ name: string; pending: number; dead: number; oldest: number | null }>(
    `SELECT h.name,
       (SELECT coalesce(sum(l.pending), 0)::bigint FROM sidecar.lanes l WHERE l.handler = h.number) AS pending,
       (SELECT count(*) FROM sidecar.delivery_rows d WHERE d.handler = h.number AND d.status = 2) AS dead,
       (SELECT f.at FROM sidecar.facts f WHERE f.pos = ${OLDEST}) AS oldest
     FROM sidecar.handlers h`,
  )
  const sessions = await queries.rows<{ status: string; count: number }>(
    'SELECT status, count(*) AS count FROM sidecar.sessions WHERE deleted_at IS NULL GROUP BY status ORDER BY status',
  )
  const actions = await queries.rows<{ type: string; count: number; oldest: number | null }>(
    `SELECT type, count(*) AS count, min(coalesce(created_at, opened_at)) AS oldest FROM sidecar.actions
     WHERE resolved_at IS NULL GROUP BY type`,
  )
  // A hint without a `seen` time is a read that the sidecar scheduled itself: it does not count as unread.
  const [rest] = await queries.rows<{
    calls: number
    since: number | null
    dirty: number
    unread: number
    oldest: number | null
    foreign: number
    held: number
    bytes: number
  }>(
    `SELECT
       (SELECT count(*) FROM sidecar.calls WHERE ended_at IS NULL) AS calls,
       (SELECT min(t.created_at) FROM sidecar.turns t JOIN sidecar.sessions s ON s.id = t.session_id
         WHERE t.settled = 0 AND t.final = 1 AND s.deleted_at IS NULL AND t.artifacts IS NOT NULL) AS since,
       (SELECT count(*) FROM sidecar.hints) AS dirty,
       (SELECT count(*) FROM sidecar.hints WHERE coalesce(seen_stream, seen_webhook, seen_poll) IS NOT NULL) AS unread,
       (SELECT min(least(seen_stream, seen_webhook, seen_poll)) FROM sidecar.hints) AS oldest,
       (SELECT count(*) FROM sidecar.session_owners WHERE owner = 'foreign') AS foreign,
       (SELECT count(*) FROM sidecar.held_frames) AS held,
       (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'sidecar' AND c.relkind = 'r') AS bytes`,
  )
  return {
    sessions: Object.fromEntries(sessions.map(({ status, count: number }) => [status, number])),
    actions: Object.fromEntries(
      actions.map(({ type, count: number, oldest }) => [type, { count: number, oldest }]),
    ),
    deliveries: Object.fromEntries(
      handlers.map(({ name, pending, dead, oldest }) => [name, { pending, dead, oldestPending: oldest }]),
    ),
    openCalls: rest?.calls ?? 0,
    artifactsPendingSince: rest?.since ?? null,
    dirty: rest?.dirty ?? 0,
    unread: { count: rest?.unread ?? 0, oldest: rest?.oldest ?? null },
    foreignSessions: rest?.foreign ?? 0,
    heldFrames: rest?.held ?? 0,
    bytes: rest?.bytes ?? 0,
  }
}
