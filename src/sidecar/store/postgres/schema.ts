import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { StoreError } from '../../../core/store-error.ts'
import { codeOf, OperatorError } from '../../../std/errors.ts'
import { transact, WHOLE_TABLE, type Database, type Queries, type Transaction } from './database.ts'

const FOLDER = join(import.meta.dirname, 'migrations')
/** The lock with which replicas that start at once migrate one after the other. No other program uses this number. */
const LOCK = 7_305_262_417

/**
 * While a backup reads a table, ALTER TABLE waits for it, and every later statement of the older replicas waits behind ALTER TABLE.
 * So a migration gives up soon, and tries again.
 */
const LONGEST_WAIT = 500
const TRIES = 30
/** SQLSTATE: the wait for a lock was too long. */
const LOCKED = '55P03'

/** The texts of the migrations, in order. */
function migrations(): string[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.sql'))
  return files.toSorted().map((name) => readFileSync(join(FOLDER, name), 'utf8'))
}

/** The number of the last migration that this program has. */
export function knownVersion(): number {
  return migrations().length
}

/**
 * The number of the last migration that was applied to a database; 0: there is no store.
 * @throws {OperatorError} when it holds a copy that is not complete.
 */
export async function versionOf(queries: Queries): Promise<number> {
  const [known] = await queries.rows<{ known: boolean; copying: boolean }>(
    `SELECT to_regclass('sidecar.schema_versions') IS NOT NULL AS known,
       to_regclass('sidecar.unfinished_copy') IS NOT NULL AS copying`,
  )
  if (known?.copying === true)
    throw new OperatorError(
      'store: the database holds a copy that is not complete',
      1,
      'run the same "store copy" again, which continues; or remove it: DROP SCHEMA sidecar CASCADE',
    )
  return known?.known === true ? await appliedVersion(queries) : 0
}

/** As `versionOf`, for a schema that exists. */
export async function appliedVersion(queries: Queries): Promise<number> {
  const [row] = await queries.rows<{ version: number | null }>(
    'SELECT max(version) AS version FROM sidecar.schema_versions',
  )
  return row?.version ?? 0
}

/**
 * Brings the database to the newest schema. `prepare`: further statements for a copy, in the same transaction.
 * @throws {OperatorError} when its schema is newer than this program knows.
 */
export async function migrate(
  database: Database,
  { prepare, onWait }: { prepare?: Prepare; onWait?: () => void } = {},
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await transact(database, (step) => migrateIn(step, prepare))
    } catch (error) {
      if (!(error instanceof TableLocked)) throw error
      if (tries === TRIES) throw error.cause
      if (tries === 1) onWait?.()
      await database.rows('SELECT pg_sleep(1)')
    }
  }
}

type Prepare = (step: Transaction) => Promise<void>

/** Another program locks a table that a migration changes, or another replica migrates. */
class TableLocked extends Error {
  override readonly name = 'TableLocked'
}

async function noteLocked(run: () => Promise<unknown>): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (error instanceof StoreError && codeOf(error.cause) === LOCKED)
      throw new TableLocked('a table is locked', { cause: error })
    throw error
  }
}

async function migrateIn(step: Transaction, prepare?: Prepare): Promise<void> {
  const known = migrations()
  await noteLocked(() => step.rows('SELECT pg_advisory_xact_lock($1::bigint)', [LOCK]))
  await makeSchema(step)
  const version = await (prepare === undefined ? versionOf(step) : appliedVersion(step))
  if (version > known.length) {
    throw new OperatorError(
      `store: the database was written by a newer version (schema ${version}, this program knows ${known.length})`,
      1,
      'run that version; nothing was changed',
    )
  }
  const missing = known.slice(version)
  if (missing.length > 0) await step.script(`SET LOCAL lock_timeout = '${LONGEST_WAIT}ms'`)
  for (const [index, text] of missing.entries()) {
    // It may make an index of ten million rows.
    await noteLocked(() => step.script(text, WHOLE_TABLE))
    await step.change('INSERT INTO sidecar.schema_versions (version) VALUES ($1)', [version + index + 1])
  }
  await prepare?.(step)
}

/**
 * An administrator gave the schema to a user who may make no schemas. `CREATE … IF NOT EXISTS` refused that user, although
 * there was nothing to make.
 */
async function makeSchema(step: Transaction): Promise<void> {
  const [there] = await step.rows<{ schema: boolean; versions: boolean }>(
    `SELECT to_regnamespace('sidecar') IS NOT NULL AS schema, to_regclass('sidecar.schema_versions') IS NOT NULL AS versions`,
  )
  if (there?.schema !== true) await step.script('CREATE SCHEMA sidecar')
  if (there?.versions !== true)
    await step.script(
      'CREATE TABLE sidecar.schema_versions (version int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())',
    )
}
