import { OperatorError } from '../../../std/errors.ts'
import { objectOf } from '../../../std/depth.ts'
import { parseAction, parseSession, parseTurn } from '../../../core/wire.ts'
import {
  transact,
  WHOLE_TABLE,
  type Database,
  type DatabaseAddress,
  type Queries,
  type Transaction,
} from '../postgres/database.ts'
import { placeOf } from '../membership.ts'
import { glance, type Glance } from '../postgres/inspect.ts'
import { appliedVersion, knownVersion, migrate } from '../postgres/schema.ts'
import { boundRows } from '../postgres/bodies.ts'
import { assertUsable, connectTo, explainRefusal } from '../postgres/server.ts'
import { resume, START, type Source, type Target, type Unfinished } from './copy.ts'
import { columnsOf, NUMBERED, PAGE, TABLES, type Key, type Row, type Table, type Value } from './tables.ts'

/**
 * Opens a store to copy its present state. Later changes are not visible.
 * @throws {OperatorError} when a sidecar works with it, or it cannot be read.
 */
export async function openSource(address: DatabaseAddress): Promise<Source> {
  return await opened(address, async (database) => {
    const { url } = address
    const { schema, newest } = await atRest(database, url)
    if (schema !== newest)
      throw new OperatorError(
        schema === 0
          ? `store: there is no store in ${url}`
          : `store: ${url} has schema ${schema}, this program has ${newest}`,
        1,
        schema === 0
          ? 'correct --from'
          : 'start a sidecar of this version on it once, or copy with the version that wrote it',
      )
    const reading = await database.begin()
    // While a file with a million facts was read to compare it, the server ended this transaction because it was idle.
    await reading.script(
      'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL idle_in_transaction_session_timeout = 0',
    )
    const mark = await markOf(reading)
    const fresh = await one(reading, FIRST_FRESH)
    return {
      place: url,
      mark,
      now: await timeOf(reading),
      page: (table, after) => pageOf(reading, table, after, fresh),
      count: (table) => one(reading, `SELECT count(*) AS one FROM sidecar.${table.name}`),
      async numbers() {
        const numbers: Record<string, number> = {}
        for (const table of NUMBERED) numbers[table] = await one(reading, LAST[table])
        return numbers
      },
      async assertAtRest() {
        await atRest(database, url)
        if ((await markOf(database)) === mark) return
        throw new OperatorError(
          `store: a sidecar worked with ${url} while it was copied`,
          1,
          'stop it, and copy again',
        )
      },
      async close() {
        await reading.rollback()
        await database.close()
      },
    }
  })
}

/**
 * Makes a store in a database, or continues a copy that is not complete. No sidecar starts with an incomplete copy.
 * @throws {OperatorError} when the database holds a store already, or cannot be used.
 */
export async function openTarget(address: DatabaseAddress): Promise<Target> {
  return await opened(address, async (database) => {
    const { url } = address
    await assertUsable(database, url)
    return {
      place: url,
      now: await timeOf(database),
      // `null`: each delivery in a copy has a row.
      page: (table, after) => pageOf(database, table, after, null),
      async begin(origin) {
        const [there] = await database.rows<{ store: boolean; copying: boolean }>(
          `SELECT to_regclass('sidecar.schema_versions') IS NOT NULL AS store,
             to_regclass('sidecar.unfinished_copy') IS NOT NULL AS copying`,
        )
        if (there?.copying === true) {
          const [found] = await database.rows<Unfinished>('SELECT origin, place FROM sidecar.unfinished_copy')
          const known = found === undefined ? null : resume(found, origin)
          if (known !== null && (await appliedVersion(database)) === knownVersion()) return known
        } else if (there?.store === true)
          throw new OperatorError(
            `store: ${url} holds a store already`,
            1,
            'name another database, or remove what is there: DROP SCHEMA sidecar CASCADE',
          )
        try {
          const prepare = async (step: Transaction): Promise<void> => {
            await step.script(BEGIN)
            await step.change('INSERT INTO sidecar.unfinished_copy VALUES ($1, $2)', [
              JSON.stringify(origin),
              JSON.stringify(START),
            ])
          }
          await migrate(database, { prepare })
        } catch (error) {
          throw explainRefusal(error, url)
        }
        return { origin, place: START }
      },
      async write(table, rows, { from, to }) {
        await transact(database, async (step) => {
          // This transaction does not wait for the disk. The one of `finish` does, and then all earlier ones are on
          // disk too.
          await step.script('SET LOCAL synchronous_commit = off')
          const moved = await step.change('UPDATE sidecar.unfinished_copy SET place = $2 WHERE place = $1', [
            JSON.stringify(from),
            JSON.stringify(to),
          ])
          if (moved !== 1)
            throw new OperatorError(`store: another copy into ${url} is under way`, 1, 'wait for its end')
          await insert(step, table, rows)
        })
      },
      async finish(numbers) {
        await transact(database, async (step) => {
          for (const table of NUMBERED) await step.rows(SET_LAST[table], [numbers[table] ?? 0])
          await step.script(
            `UPDATE sidecar.lanes SET fresh = (SELECT last + 1 FROM sidecar.positions WHERE name = 'facts')`,
          )
          await step.script('DROP TABLE sidecar.unfinished_copy')
        })
        // Without ANALYZE, the first statements of a sidecar are planned for empty tables.
        for (const { name, rows = name } of TABLES) await database.change(`ANALYZE sidecar.${rows}`)
      },
      close: () => database.close(),
    }
  })
}

async function opened<T>(address: DatabaseAddress, open: (database: Database) => Promise<T>): Promise<T> {
  const database = await connectTo({ ...address, connections: 2, longest: WHOLE_TABLE })
  try {
    return await open(database)
  } catch (error) {
    await database.close()
    throw explainRefusal(error, address.url)
  }
}

const BEGIN = `
  TRUNCATE ${TABLES.map(({ name, rows = name }) => `sidecar.${rows}`).join(', ')};
  CREATE TABLE IF NOT EXISTS sidecar.unfinished_copy (origin text NOT NULL, place text NOT NULL);
  TRUNCATE sidecar.unfinished_copy`

const POSITION = (name: string): string => `SELECT last AS one FROM sidecar.positions WHERE name = '${name}'`
const SET_POSITION = (name: string): string =>
  `UPDATE sidecar.positions SET last = $1::bigint WHERE name = '${name}'`
const SEQUENCE = (column: string): string =>
  `pg_get_serial_sequence('sidecar.${column.replace('.', "', '")}')`
const IDENTITY = (column: string): string =>
  `SELECT coalesce(pg_sequence_last_value(${SEQUENCE(column)}::regclass), 0) AS one`
const SET_IDENTITY = (column: string): string =>
  `SELECT setval(${SEQUENCE(column)}::regclass, greatest($1::bigint, 1), $1::bigint > 0)`

const LAST: Readonly<Record<(typeof NUMBERED)[number], string>> = {
  facts: POSITION('facts'),
  held_frames: POSITION('held_frames'),
  handlers: IDENTITY('handlers.number'),
  lanes: IDENTITY('lanes.id'),
  quarantine: IDENTITY('quarantine.id'),
}
const SET_LAST: typeof LAST = {
  facts: SET_POSITION('facts'),
  held_frames: SET_POSITION('held_frames'),
  handlers: SET_IDENTITY('handlers.number'),
  lanes: SET_IDENTITY('lanes.id'),
  quarantine: SET_IDENTITY('quarantine.id'),
}
/**
 * Each start of a sidecar takes a new epoch, so the highest epoch shows whether a sidecar has worked with the store.
 */
const EPOCH = 'SELECT coalesce(max(epoch), 0) AS one FROM sidecar.leases'

async function atRest(queries: Queries, url: string): Promise<Glance> {
  const seen = await glance(queries, url)
  if (seen.held)
    throw new OperatorError(`store: a sidecar works with ${url}`, 1, 'stop it; after a kill, wait 15 seconds')
  return seen
}

async function markOf(queries: Queries): Promise<string> {
  return `${await one(queries, EPOCH)} ${await one(queries, LAST.facts)}`
}

async function timeOf(queries: Queries): Promise<number> {
  return await one(queries, 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS one')
}

async function one(queries: Queries, text: string): Promise<number> {
  const [row] = await queries.rows<{ one: number | null }>(text)
  return row?.one ?? 0
}

/** The first position whose deliveries may have no row. */
const FIRST_FRESH = 'SELECT min(fresh) AS one FROM sidecar.lanes WHERE pending > 0'

/**
 * The rows of the view `fresh_deliveries` from a position on. For each page of a backlog of a million deliveries, the server
 * joined all that were left, and sorted them. `OFFSET 0` makes it take fact after fact, until the page is full.
 */
const FRESH = (first: number): string => `
  SELECT f.pos AS fact_pos, w.handler, w.lane, 0::smallint AS status, 0 AS attempts, 0 AS cut, '' AS log, NULL AS answer
  FROM (SELECT * FROM sidecar.facts WHERE wanted <> 0 AND pos >= ${first} ORDER BY pos OFFSET 0) AS f, LATERAL (
    SELECT l.handler, l.id AS lane FROM sidecar.handlers h
      JOIN sidecar.lanes l ON l.handler = h.number AND l.key = coalesce(f.session_id, '') AND f.pos >= l.fresh AND l.pending > 0
    WHERE h.number <= 30 AND f.wanted >> h.number & 1 = 1
      AND NOT EXISTS (SELECT 1 FROM sidecar.delivery_rows d WHERE d.fact_pos = f.pos AND d.handler = h.number)
    OFFSET 0) AS w`

/** `fresh`: the first position whose deliveries may have no row; null: all have. */
async function pageOf(
  queries: Queries,
  table: Table,
  after: Key | null,
  fresh: number | null,
): Promise<Row[]> {
  const key = table.key.join(', ')
  const columns = columnsOf(table).join(', ')
  const where =
    after === null
      ? ''
      : `WHERE (${key}) > (${table.key.map((column, index) => `$${index + 1}::${typeOf(table, column)}`).join(', ')})`
  const rows = `(SELECT ${columns} FROM sidecar.${table.rows ?? table.name} ${where} ORDER BY ${key} LIMIT ${PAGE.rows})`
  const parts = [rows]
  if (table.name === 'deliveries' && fresh !== null) {
    const first = Math.max(fresh, Number(after?.[0] ?? 0))
    parts.push(
      `(SELECT ${columns} FROM (${FRESH(first)}) AS fresh ${where} ORDER BY ${key} LIMIT ${PAGE.rows})`,
    )
  }
  const size = ['0', ...table.texts.map((column) => `coalesce(octet_length(${column}), 0)`)].join(' + ')
  const few = `SELECT * FROM (${parts.join(' UNION ALL ')}) AS parts ORDER BY ${key} LIMIT ${PAGE.rows}`
  return await queries.rows<Row>(
    `SELECT ${columns} FROM (${boundRows(few, { order: key, size }, PAGE.bytes)}) AS page ORDER BY ${key}`,
    after ?? [],
  )
}

function typeOf({ numbers }: Table, column: string): 'bigint' | 'text' {
  return numbers.includes(column) ? 'bigint' : 'text'
}

async function insert(queries: Queries, table: Table, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return
  const derived = Object.entries(DERIVED[table.name] ?? {})
  const columns = columnsOf(table)
  const values = columns.map((column) => rows.map((row) => row[column] ?? null))
  const types = columns.map((column) => `${typeOf(table, column)}[]`)
  for (const [column, derive] of derived) {
    columns.push(column)
    values.push(rows.map(derive))
    types.push(column === 'shard' ? 'bigint[]' : 'text[]')
  }
  await queries.change(
    `INSERT INTO sidecar.${table.rows ?? table.name} (${columns.join(', ')}) OVERRIDING SYSTEM VALUE
     SELECT * FROM unnest(${types.map((type, index) => `$${index + 1}::${type}`).join(', ')})`,
    values,
  )
}

/** Columns that only PostgreSQL has, computed from the columns that both engines have. */
const DERIVED: Readonly<Record<string, Readonly<Record<string, (row: Row) => Value>>>> = {
  lanes: { shard: shardOfRow },
  begun: { shard: shardOfRow },
  calls: { shard: shardOfRow },
  hints: { shard: shardOfRow },
  sessions: { title: ({ raw }) => parseSession(objectOf(String(raw)))?.title ?? null },
  turns: {
    artifacts: ({ raw }) => (raw === null ? null : (parseTurn(objectOf(String(raw)))?.artifacts ?? null)),
  },
  actions: {
    turn_id: ({ raw }) => parseAction(objectOf(String(raw)))?.turnId ?? null,
    name({ raw }) {
      const name = objectOf(String(raw))?.['name']
      return typeof name === 'string' ? name : null
    },
  },
}

function shardOfRow({ session_id: session }: Row): number {
  return placeOf(String(session))
}
