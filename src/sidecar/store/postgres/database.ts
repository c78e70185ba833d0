import type { Client, ClientConfig, Pool, PoolClient, PoolConfig, QueryConfig, QueryResult } from 'pg'
import { codeOf, messageOf, OperatorError } from '../../../std/errors.ts'
import { isObject } from '../../../std/json.ts'
import { StoreError } from '../../../core/store-error.ts'
import { original, parameterOf } from './text.ts'

export type Value = string | number | boolean | null | readonly (string | number | null)[]

/** Runs statements: a connection, or any connection of a pool. */
export interface Queries {
  /** The rows, of columns whose names and types `R` declares. */
  rows<R>(text: string, values?: readonly Value[]): Promise<R[]>
  /** The number of rows that a statement changed. */
  change(text: string, values?: readonly Value[]): Promise<number>
}

/** Where the database is. What is missing in the URL comes from the environment (`PGHOST` and so on). */
export interface DatabaseAddress {
  /** `postgres://…` or `postgresql://…`; parameters have no effect. */
  url: string
  /**
   * Called at each connection, in place of the password in the URL. null: the password of the environment, or of
   * `~/.pgpass`.
   */
  password?: () => string | null
  ssl?: NonNullable<ClientConfig['ssl']>
  connections?: number
  /** Milliseconds that a statement may take. */
  longest?: number
  /** Whether a standby may answer. */
  standby?: boolean
  /** Reads of a running sidecar, most of few rows, are planned once. Otherwise each is planned for its values. */
  lookups?: boolean
}

/**
 * A transaction that is under way. Each statement is sent at once, so several can be under way together. After one fails,
 * all others fail.
 */
export interface Transaction extends Queries {
  /** Several statements at once, which are not prepared. `longest`: milliseconds that they may take, if it is set. */
  script(text: string, longest?: number): Promise<void>
  /**
   * Sent directly behind the statements that are under way.
   * @throws {StoreError} when the server rolled back, or when its answer was lost.
   */
  commit(): Promise<void>
  rollback(): Promise<void>
}

/** The server answered COMMIT with ROLLBACK. */
export class RolledBack extends Error {
  override readonly name = 'RolledBack'

  constructor() {
    super('the server rolled back')
  }
}

/** The server is a standby, which accepts no writes, and whose rows may be old. */
export class StandbyError extends Error {
  override readonly name = 'StandbyError'

  constructor() {
    super('the server is a standby')
  }
}

/** A connection of its own that receives the notifications of a channel. */
export interface Listening {
  readonly ended: Promise<unknown>
  end(): void
}

export interface Database extends Queries {
  /**
   * Statements that write, one after the other, each a transaction by itself. null behind a pooler, which passes on no limits
   * for them.
   */
  readonly single: Queries | null
  /**
   * Whether a pooler, such as PgBouncer, stands before the server. It gives the server's connection to another client
   * after each transaction.
   */
  readonly pooled: boolean
  /**
   * Statements on a connection of its own, which no slow read delays. A statement that takes long fails early, and can
   * be repeated.
   */
  readonly heartbeat: Queries
  /** Reads for people and metrics. They may take long; no delivery and no reader of the relay waits for them. */
  readonly people: Queries
  /** `small`: its statements concern few rows, whatever their values are, so each is planned once. */
  begin(small?: boolean): Promise<Transaction>
  listen(channel: string, heard: (text: string) => void): Promise<Listening>
  close(): Promise<void>
}

/** Milliseconds. */
const TIMES = {
  connect: 5_000,
  /** The limit of a statement. It takes milliseconds, and a lock is held for a few statements only. */
  statement: 10_000,
  lock: 9_000,
  /** The driver waits this much longer than the limit of a statement, so that the server ends it first. */
  answer: 1_000,
  /** Less than `lock`: a process that is frozen in a transaction loses its locks before others stop waiting for them. */
  idleInTransaction: 4_000,
  idle: 30_000,
  /** The limit of a renewal of leases, so that it can be repeated twice before they end. */
  heartbeat: 3000,
}
/** The limit of a statement that reads a whole table of millions of rows, or makes an index of it, milliseconds. */
export const WHOLE_TABLE = 600_000
/** The most connections that deliver; one of them writes transactions of several statements. */
const CONNECTIONS = 4
/** The most connections of `people`. */
const FOR_PEOPLE = 2

/**
 * To plan a read of a lane, or an outcome, takes longer than to run it. So a statement is planned once, unless a pooler
 * stands before the server. A plan that is made while a table is empty may read the whole table, also when the table has
 * grown. Without a sequential scan, hash join or merge join, the plan looks each row up. PostgreSQL before 18 counts a plan
 * that must use one of them as very expensive, and compiles it to machine code, which takes a tenth of a second.
 */
const PLANNED_ONCE = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  jit: 'off',
}
/**
 * An administrator turned `synchronous_commit` off for a role with many jobs. After a crash of the server, a tool ran again
 * whose result had been posted, because its commit was lost. The other values keep what is committed. `isLocal`: for one
 * transaction.
 */
const durable = (isLocal: boolean): string =>
  `CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', ${isLocal}) END`
/**
 * A process is frozen while the server sends it a session of 16 MiB, within a transaction that holds locks. The limits of statements do
 * not end that: the server waits for room in the socket. So the kernel ends a connection that takes nothing for so long.
 */
const UNREAD = { tcp_user_timeout: String(TIMES.idleInTransaction) }
/** A statement alone has the isolation of each transaction that `begin` makes, whatever the server's default is. */
const ALONE = { ...PLANNED_ONCE, default_transaction_isolation: 'read committed' }
/** A transaction that may concern many rows plans each statement with parameters for its values, and does not keep the plan. */
const PLANNED_EACH_TIME = {
  plan_cache_mode: 'force_custom_plan',
  enable_seqscan: 'on',
  enable_hashjoin: 'on',
  enable_mergejoin: 'on',
}

/** Ids of types. */
const INT8 = 20
const TEXTS = new Set([25, 1043])

/**
 * Connects to a server. Each connection prepares a statement once, under a name, unless a pooler stands before the
 * server.
 * @throws {OperatorError} when the package `pg` is missing; {StoreError} or an error of the driver when the server cannot be
 *   reached.
 */
export async function openDatabase(
  {
    connections = CONNECTIONS,
    longest = TIMES.statement,
    standby = false,
    lookups = false,
    ...address
  }: DatabaseAddress,
  onError: (error: Error) => void,
): Promise<Database> {
  const pg = await loadDriver()
  const config: ClientConfig = {
    ...placeOf(address),
    application_name: 'agent-session-sidecar',
    connectionTimeoutMillis: TIMES.connect,
    // The limits of the server have no effect on a connection that broke without notice.
    query_timeout: longest + TIMES.answer,
    keepAlive: true,
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') => {
        if (oid === INT8) return numberOfInt8
        if (TEXTS.has(oid)) return original
        return pg.types.getTypeParser(oid, format ?? 'text')
      },
    },
  }
  const limits = {
    statement_timeout: longest,
    lock_timeout: TIMES.lock,
    idle_in_transaction_session_timeout: TIMES.idleInTransaction,
  }
  // The database may have a limit of its own, such as 10 s: this one can only be ours.
  const odd = longest - 27
  const pooled = await isPooled(new pg.Client({ ...config, ...limits, statement_timeout: odd }), odd)
  if (!pooled) Object.assign(config, limits)
  // Behind a pooler, the setting would reach the other clients: there, each transaction has it.
  const lasting = pooled ? '' : `, ${durable(false)}`
  const pooling: PoolConfig = {
    ...config,
    allowExitOnIdle: true,
    ...(standby ? {} : { verify: verify(lasting) }),
  }
  const writing = lasting + columnsOf(pooled ? {} : UNREAD)
  const readers = new pg.Pool({
    ...pooling,
    ...(lookups && !pooled ? { verify: verify(columnsOf(ALONE) + lasting) } : {}),
    max: Math.max(1, connections - 1),
    idleTimeoutMillis: TIMES.idle,
  })
  const people = new pg.Pool({ ...pooling, max: FOR_PEOPLE, idleTimeoutMillis: TIMES.idle })
  const writers = new pg.Pool({
    ...pooling,
    ...(standby ? {} : { verify: verify(writing) }),
    pipeline: !pooled,
    max: 1,
    idleTimeoutMillis: 0,
  })
  const singles = new pg.Pool({
    ...pooling,
    verify: verify(columnsOf(ALONE) + writing),
    pipeline: true,
    max: 1,
    idleTimeoutMillis: 0,
  })
  const heartbeats = new pg.Pool({
    ...pooling,
    ...(pooled ? {} : { statement_timeout: TIMES.heartbeat }),
    query_timeout: TIMES.heartbeat,
    connectionTimeoutMillis: TIMES.heartbeat,
    max: 1,
    idleTimeoutMillis: TIMES.idle,
  })
  const pools = [readers, people, writers, singles, heartbeats]
  // After an idle connection breaks, the next statement opens another one.
  for (const pool of pools) {
    pool.on('error', (error) => onError(error))
    // A connection may also break in use: without a listener its error would end the process.
    pool.on('connect', (client) => client.on('error', () => undefined))
  }
  return {
    pooled,
    ...queriesOf(readers, pooled),
    single: pooled ? null : queriesOf(singles, false),
    heartbeat: queriesOf(heartbeats, pooled),
    people: queriesOf(people, pooled),
    begin: (small = false) => begin(writers, { limits: pooled ? limits : null, small }),
    listen: (channel, heard) => listen(new pg.Client(config), channel, heard),
    async close() {
      await Promise.all(pools.map((pool) => pool.end()))
    },
  }
}

function placeOf({ url, ssl, password }: DatabaseAddress): ClientConfig {
  const place = new URL(url)
  const [user, host, database] = [place.username, place.hostname, place.pathname.slice(1)].map(
    decodeURIComponent,
  )
  // The driver accepts no function that returns no password: then the key is left out.
  const given = password === undefined ? decodeURIComponent(place.password) : password()
  return {
    ...(user === '' ? {} : { user }),
    // An IPv6 address has brackets in a URL, and the driver looked the name `[::1]` up.
    ...(host === '' ? {} : { host: host?.replace(/^\[(.*)\]$/, '$1') }),
    ...(database === '' ? {} : { database }),
    ...(place.port === '' ? {} : { port: Number(place.port) }),
    ...(given === null || given === '' ? {} : { password: () => password?.() ?? given }),
    ...(ssl === undefined ? {} : { ssl }),
  }
}

/**
 * PgBouncer refuses limits at the start of a connection, or drops them if `ignore_startup_parameters` says so. Behind
 * it, a prepared statement may be missing: the next transaction can have another connection of the server.
 */
async function isPooled(client: Client, limit: number): Promise<boolean> {
  client.on('error', () => undefined)
  try {
    await client.connect()
    const { rows } = await client.query<{ limit: string }>(
      "SELECT setting AS limit FROM pg_settings WHERE name = 'statement_timeout'",
    )
    return Number(rows[0]?.limit) !== limit
  } catch (error) {
    if (/unsupported startup parameter/i.test(messageOf(error))) return true
    // A pooler that was paused at this moment was taken for none, and our settings reached the other clients behind it.
    throw explain(error)
  } finally {
    await client.end().catch(() => undefined)
  }
}

/**
 * During a failover, DNS may lead to a standby, whose connections last. A server that becomes a standby starts again, so
 * it is enough to ask at the start of a connection.
 */
function verify(columns: string): NonNullable<PoolConfig['verify']> {
  const text = `SELECT pg_is_in_recovery() AS standby${columns}`
  return (client, done) =>
    client.query<{ standby: boolean }>(text, (error, result) =>
      done(error ?? (result.rows[0]?.standby === false ? undefined : new StandbyError())),
    )
}

/** Columns of a SELECT that change the settings of the connection. */
function columnsOf(settings: Readonly<Record<string, string>>): string {
  return Object.entries(settings)
    .map(([name, value]) => `, set_config('${name}', '${value}', false)`)
    .join('')
}

/** Every stored int8 is below 2^53. @throws {RangeError} on one that a number does not hold: rounded, it would be another position. */
function numberOfInt8(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number)) throw new RangeError(`${text} is above 2^53`)
  return number
}

async function loadDriver(): Promise<typeof import('pg').default> {
  try {
    const { default: pg } = await import('pg')
    return pg
  } catch (error) {
    if (!isObject(error) || codeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new OperatorError(
      'store.url: a store in PostgreSQL needs the package pg, which is not installed',
      2,
      'run: npm install pg',
    )
  }
}

interface Connection {
  query(config: QueryConfig | string): Promise<QueryResult>
}

type InOrder = <T>(run: () => Promise<T>) => Promise<T>

const atOnce: InOrder = (run) => run()

/**
 * Behind a pooler, the driver printed a line between the log lines in JSON: it warns when it gets a statement before the end
 * of the last one, except in a pipeline.
 */
function oneByOne(): InOrder {
  let last: Promise<unknown> = Promise.resolve()
  return (run) => {
    const next = last.then(run, run)
    last = next
    return next
  }
}

const names = new Map<string, string>()

/** The name under which a connection keeps the plan of a statement. */
function nameOf(text: string): string {
  let name = names.get(text)
  if (name === undefined) names.set(text, (name = `s${names.size}`))
  return name
}

function statement(text: string, values: readonly Value[], pooled: boolean): QueryConfig {
  const query = { text, values: values.map(parameterOf) }
  return pooled ? query : { name: nameOf(text), ...query }
}

function queriesOf(connection: Connection, pooled: boolean): Queries {
  return {
    async rows<R>(text: string, values: readonly Value[] = []) {
      const { rows } = await attempt(() => connection.query(statement(text, values, pooled)))
      return rows as R[]
    },
    async change(text, values = []) {
      const { rowCount } = await attempt(() => connection.query(statement(text, values, pooled)))
      return rowCount ?? 0
    },
  }
}

async function listen(client: Client, channel: string, heard: (text: string) => void): Promise<Listening> {
  const end = (): void => {
    // A half-open connection never answers a request to end. If a query is under way, the driver cuts the connection at
    // once.
    client.query('SELECT 1').catch(() => undefined)
    client.end().catch(() => undefined)
  }
  client.on('error', () => undefined)
  client.on('notification', ({ payload = '' }) => heard(payload))
  const ended = new Promise((resolve) => void client.once('end', () => resolve(null)))
  try {
    await attempt(() => client.connect())
    await attempt(() => client.query(`LISTEN ${channel}`))
    return { ended, end }
  } catch (error) {
    end()
    throw error
  }
}

/**
 * On these connections only a transaction that BEGIN made may write. A statement whose BEGIN failed is a transaction by
 * itself, and so changes nothing.
 */
const guards = new WeakMap<PoolClient, Promise<boolean>>()

/** @returns false where a server or a database is set to read-only: no transaction of ours may undo that. */
async function guard(client: PoolClient): Promise<boolean> {
  const { rows } = await client.query<{ policy: string }>(
    `SELECT current_setting('default_transaction_read_only') AS policy${columnsOf(PLANNED_ONCE)}`,
  )
  if (rows[0]?.policy !== 'off') return false
  await client.query('SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY')
  return true
}

async function isGuarded(client: PoolClient): Promise<boolean> {
  let guarding = guards.get(client)
  if (guarding === undefined) guards.set(client, (guarding = guard(client)))
  return await guarding
}

/**
 * `limits`: are set in each transaction behind a pooler, which does not pass them on, milliseconds; null: no pooler.
 */
async function begin(
  writers: Pool,
  { limits, small }: { limits: Readonly<Record<string, number>> | null; small: boolean },
): Promise<Transaction> {
  const client = await attempt(() => writers.connect())
  const inOrder = limits === null ? atOnce : oneByOne()
  /** A standby keeps its connections after a failover to another server: one that it refused must not be used again. */
  let isUsable = true
  const refuse = (error: unknown): never => {
    const refusal = explain(error)
    if (refusal instanceof StoreError && refusal.kind === 'unreachable') isUsable = false
    throw refusal
  }
  // The answers to a statement and to COMMIT may come at once, so `refuse` is the first to see an error.
  const connection = {
    query: (config: QueryConfig | string) => inOrder(() => client.query(config)).catch(refuse),
  }
  const queries = queriesOf(connection, limits !== null)
  const settings = Object.entries(limits ?? (small ? {} : PLANNED_EACH_TIME))
  const sets = settings.map(([name, value]) => `; SET LOCAL ${name} = ${value}`)
  let isOver = false
  const give = (error?: unknown): void => {
    isOver = true
    client.release(error !== undefined || !isUsable)
  }
  /** A statement after the end would be a transaction by itself. */
  const open = (): void => {
    if (isOver) throw new Error('the transaction is over')
  }
  let begun: Promise<unknown>
  try {
    const guarded = limits === null && (await attempt(() => isGuarded(client)))
    // READ COMMITTED, whatever the server’s default is: the check of the fence must see what was committed while it
    // waited.
    const mode = `ISOLATION LEVEL READ COMMITTED${guarded ? ' READ WRITE' : ''}`
    const durably = limits === null ? '' : `; SELECT ${durable(true)}`
    begun = attempt(() => connection.query(`BEGIN ${mode}${sets.join('')}${durably}`))
    // If BEGIN fails, the statements behind it report that. A transaction may also be given up before the first of
    // them.
    begun.catch(() => undefined)
    // Without the guard, a statement whose BEGIN was cancelled would be a transaction by itself.
    if (!guarded) await begun
  } catch (error) {
    give(error)
    throw error
  }
  /** If BEGIN fails, the statements behind it fail because of that: its error is the one to throw. */
  const inTransaction = async <T>(run: () => Promise<T>): Promise<T> => {
    open()
    return (await Promise.all([begun, run()]))[1]
  }
  return {
    rows: <R>(text: string, values?: readonly Value[]) => inTransaction(() => queries.rows<R>(text, values)),
    change: (text, values) => inTransaction(() => queries.change(text, values)),
    async script(text, longest) {
      if (longest !== undefined)
        await inTransaction(() => connection.query(`SET LOCAL statement_timeout = ${longest}`))
      const patience = longest === undefined ? {} : { query_timeout: longest + TIMES.answer }
      await inTransaction(() => connection.query({ text, ...patience }))
    },
    async commit() {
      open()
      isOver = true
      let answer: { command: string }
      try {
        answer = await attempt(() => connection.query('COMMIT'))
      } catch (error) {
        give(error)
        throw error
      }
      give()
      // After a failed statement, COMMIT gives no error, and rolls back.
      if (answer.command !== 'COMMIT') throw new StoreError('unreachable', new RolledBack())
    },
    async rollback() {
      if (isOver) return
      try {
        await connection.query('ROLLBACK')
        give()
      } catch (error) {
        give(error)
      }
    },
  }
}

/** Runs statements in a transaction of their own. */
export async function transact(database: Database, run: (step: Transaction) => Promise<void>): Promise<void> {
  const step = await database.begin()
  try {
    await run(step)
    await step.commit()
  } catch (error) {
    await step.rollback()
    throw error
  }
}

async function attempt<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw explain(error)
  }
}

/** Classes of SQLSTATE: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const FULL = /^(53100|53200|58030)$/
const BUSY = /^(55P03|57014|40001|40P01|25P03|53300)$/
const FENCED = 'SC001'
/** 25006: a standby answers, as during a failover. */
const UNREACHABLE = /^(08|57P|25006$|E[A-Z]+$)/
/**
 * A standby refuses `BEGIN READ WRITE`. A prepared statement whose columns changed is refused, too; both end with the
 * connection.
 */
const UNSUPPORTED = '0A000'
const OF_CONNECTION = /during recovery|cached plan/

/** Translates an error of the driver into the `StoreError` that callers of the store handle. */
function explain(error: unknown): unknown {
  if (error instanceof StoreError) return error
  const code = codeOf(error)
  if (code === FENCED) return new StoreError('fenced', error)
  if (FULL.test(code)) return new StoreError('full', error)
  if (BUSY.test(code)) return new StoreError('busy', error)
  if (
    error instanceof StandbyError ||
    UNREACHABLE.test(code) ||
    (code === UNSUPPORTED && OF_CONNECTION.test(messageOf(error))) ||
    /terminated|timeout|ended|not queryable/i.test(code === '' ? messageOf(error) : '')
  )
    return new StoreError('unreachable', error)
  return error
}
