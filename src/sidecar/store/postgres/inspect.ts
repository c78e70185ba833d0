import { OperatorError } from '../../../std/errors.ts'
import type { Inspection } from '../sqlite/inspect.ts'
import { FACT_COLUMNS, factOf, type FactRow } from '../sqlite/log.ts'
import { WHOLE_TABLE, type Database, type DatabaseAddress, type Queries } from './database.ts'
import { knownVersion, versionOf } from './schema.ts'
import { askServer, assertMayWrite, assertUsable, connectTo, explainRefusal } from './server.ts'

/** Problems of one kind that are listed; further ones are only counted. */
const LISTED = 20
/** Facts that are read at once. */
const PAGE = 2_000

/** What `check` shows of a database. */
export interface Glance {
  url: string
  /** Of the server, such as `18.4`. */
  version: string
  /** Number of the last migration of the database (0: no store yet), and (`newest`) of this program. */
  schema: number
  newest: number
  /** Whether a sidecar works with it now, or was killed within the last seconds. */
  held: boolean
  /** Whether a pooler stands before the server, which passes no notifications on. */
  pooled: boolean
  /** Whether our user may make or change the tables. */
  mayMigrate: boolean
}

export interface DatabaseInspection extends Glance, Omit<Inspection, 'file' | 'writtenAt'> {}

/**
 * Checks a database quickly and changes nothing; a sidecar may work with it.
 * @throws {OperatorError} when it cannot be reached or refuses our user.
 */
export function glanceAtDatabase(address: DatabaseAddress): Promise<Glance> {
  return reading(address, async (database, url) => {
    await assertUsable(database, url)
    await assertMayWrite(database, url)
    return await glance(database, url)
  })
}

/**
 * As `glanceAtDatabase`, and verifies the checksum of every fact and compares counters with the rows that they count.
 * @throws {OperatorError} as above, or when there is no store of a version that this program knows.
 */
export function inspectDatabase(address: DatabaseAddress): Promise<DatabaseInspection> {
  return reading({ ...address, longest: WHOLE_TABLE }, async (database, url) => {
    const seen = await glance(database, url)
    const { schema, newest } = seen
    if (schema === 0) throw new OperatorError(`store: there is no store in ${url}`)
    if (schema > newest)
      throw new OperatorError(
        `store: the database was written by a newer version (schema ${schema}, this program knows ${newest})`,
        1,
        'run that version; nothing was changed',
      )
    return {
      ...seen,
      ...(await counts(database)),
      problems: [...(await damagedFacts(database)), ...(await disagreements(database))],
    }
  })
}

async function reading<T>(
  address: DatabaseAddress,
  read: (database: Database, url: string) => Promise<T>,
): Promise<T> {
  const database = await connectTo({ ...address, connections: 2, standby: true })
  try {
    return await read(database, address.url)
  } catch (error) {
    throw explainRefusal(error, address.url)
  } finally {
    await database.close()
  }
}

export async function glance(
  database: Queries & Partial<Pick<Database, 'pooled'>>,
  url: string,
): Promise<Glance> {
  const { version } = await askServer(database)
  const schema = await versionOf(database)
  const [rights] = await database.rows<{ may: boolean }>(
    `SELECT CASE WHEN to_regnamespace('sidecar') IS NULL THEN has_database_privilege(current_database(), 'CREATE')
       ELSE has_schema_privilege('sidecar', 'CREATE') END AS may`,
  )
  const [lease] =
    schema === 0
      ? []
      : await database.rows<{ held: boolean }>(
          'SELECT coalesce(bool_or(NOT fenced AND until > clock_timestamp()), false) AS held FROM sidecar.replicas',
        )
  return {
    url,
    version,
    schema,
    newest: knownVersion(),
    held: lease?.held ?? false,
    mayMigrate: rights?.may ?? false,
    pooled: database.pooled ?? false,
  }
}

async function counts(database: Database): Promise<Omit<DatabaseInspection, keyof Glance | 'problems'>> {
  const [row] = await database.rows<{
    bytes: number
    facts: number
    pending: number
    dead: number
    open: number
    cursor: string | null
  }>(
    `SELECT (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
         WHERE c.relnamespace = 'sidecar'::regnamespace AND c.relkind = 'r') AS bytes,
       (SELECT count(*) FROM sidecar.facts) AS facts,
       (SELECT count(*) FROM sidecar.deliveries WHERE status = 0) AS pending,
       (SELECT count(*) FROM sidecar.delivery_rows WHERE status = 2) AS dead,
       (SELECT count(*) FROM sidecar.calls WHERE ended_at IS NULL) AS open,
       (SELECT value FROM sidecar.checkpoints WHERE name = 'stream') AS cursor`,
  )
  const { bytes = 0, facts = 0, pending = 0, dead = 0, open = 0, cursor = null } = row ?? {}
  return { bytes, facts, pending, dead, openCalls: open, cursor: cursor || null }
}

async function damagedFacts(database: Database): Promise<string[]> {
  const problems: string[] = []
  let more = 0
  let last = -1
  for (;;) {
    const rows = await database.rows<FactRow>(
      `SELECT ${FACT_COLUMNS} FROM sidecar.facts f WHERE f.pos > $1::bigint ORDER BY f.pos LIMIT $2::int`,
      [last, PAGE],
    )
    for (const row of rows) {
      last = row.pos
      if (factOf(row) !== null) continue
      if (problems.length < LISTED)
        problems.push(`fact ${row.id} (position ${row.pos}) has changed: its checksum does not match`)
      else more++
    }
    if (rows.length < PAGE) return more === 0 ? problems : [...problems, `and ${more} more facts`]
  }
}

/** Each statement counts rows that should not exist. */
const DISAGREEMENTS: readonly [string, string][] = [
  [
    'SELECT count(*) AS found FROM sidecar.delivery_rows d LEFT JOIN sidecar.facts f ON f.pos = d.fact_pos WHERE f.pos IS NULL',
    'deliveries have no fact',
  ],
  [
    `SELECT count(*) AS found FROM sidecar.lanes l LEFT JOIN
       (SELECT lane, count(*) AS pending FROM sidecar.deliveries WHERE status = 0 GROUP BY lane) d ON d.lane = l.id
     WHERE l.pending <> coalesce(d.pending, 0)`,
    'lanes have a wrong number of pending deliveries',
  ],
  [
    'SELECT count(*) AS found FROM sidecar.delivery_rows d LEFT JOIN sidecar.lanes l ON l.id = d.lane WHERE d.status = 0 AND l.id IS NULL',
    'pending deliveries are in no lane',
  ],
]

async function disagreements(database: Database): Promise<string[]> {
  const problems: string[] = []
  for (const [statement, problem] of DISAGREEMENTS) {
    const [row] = await database.rows<{ found: number }>(statement)
    if (row !== undefined && row.found > 0) problems.push(`${row.found} ${problem}`)
  }
  return problems
}
