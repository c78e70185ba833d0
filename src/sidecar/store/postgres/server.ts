import { StoreError } from '../../../core/store-error.ts'
import { codeOf, messageOf, OperatorError } from '../../../std/errors.ts'
import { openDatabase, StandbyError, type Database, type DatabaseAddress, type Queries } from './database.ts'

/** The oldest version that PostgreSQL still maintains, as `server_version_num`. */
const OLDEST = 140_000
/** A database in LATIN1 refused an agent's message with an emoji, and the stream stood still. SQL_ASCII keeps all bytes. */
const ENCODINGS = /^(UTF8|SQL_ASCII)$/

interface Server {
  /** Such as `18.4`. */
  version: string
  number: number
  /** A standby, which refuses every write. */
  recovering: boolean
  /** Of the texts in the database. */
  encoding: string
}

/** @throws {OperatorError} when the server cannot be reached, or refuses our user. */
export async function connectTo(
  address: DatabaseAddress,
  onError: (error: Error) => void = () => undefined,
): Promise<Database> {
  try {
    return await openDatabase(address, onError)
  } catch (error) {
    throw explainRefusal(error, address.url)
  }
}

export async function askServer(queries: Queries): Promise<Server> {
  const [server] = await queries.rows<Server>(
    `SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
       current_setting('server_version_num')::int AS number, pg_is_in_recovery() AS recovering,
       current_setting('server_encoding') AS encoding`,
  )
  if (server === undefined) throw new StoreError('damaged')
  return server
}

/** @throws {OperatorError} when the server cannot keep a store. */
export async function assertUsable(queries: Queries, url: string): Promise<void> {
  const { version, number, recovering, encoding } = await askServer(queries)
  const { place, user, database } = partsOf(url)
  if (number < OLDEST)
    throw new OperatorError(
      `store: PostgreSQL ${version} at ${place} is too old`,
      1,
      `use PostgreSQL ${OLDEST / 10_000} or newer`,
    )
  if (recovering) throw explainRefusal(new StandbyError(), url)
  if (!ENCODINGS.test(encoding))
    throw new OperatorError(
      `store: the database ${database} at ${place} has the encoding ${encoding}, which lacks characters`,
      1,
      `create another one, and move a store with pg_dump and pg_restore: CREATE DATABASE … OWNER "${user}" ENCODING 'UTF8' ` +
        `LOCALE 'C' TEMPLATE template0`,
    )
}

/** The parts of an address, for people; `place`: host and port. */
function partsOf(url: string): { place: string; user: string; database: string } {
  const { hostname, port, username, pathname } = new URL(url)
  return {
    place: `${decodeURIComponent(hostname)}:${port || '5432'}`,
    user: decodeURIComponent(username),
    database: decodeURIComponent(pathname.slice(1)),
  }
}

interface Refusal {
  reason: string
  fix: string
}

/** Explains the usual errors of a first connection. @returns an OperatorError; any other `error` is returned unchanged. */
export function explainRefusal(error: unknown, address: string): unknown {
  if (error instanceof OperatorError) return error
  const cause = error instanceof StoreError ? (error.cause ?? error) : error
  const { place, user, database } = partsOf(address)
  const message = messageOf(cause)
  const found =
    (cause instanceof StandbyError ? standby(place) : null) ??
    TLS.find(([pattern]) => pattern.test(`${codeOf(cause)} ${message}`))?.[1] ??
    refusalByCode(codeOf(cause), { place, user, database, message }) ??
    // The driver gives these errors no code.
    (/password must be a(?: non-empty)? string/i.test(message)
      ? { reason: `${place} asks for a password of the user ${user}`, fix: PASSWORD }
      : error instanceof StoreError && error.kind === 'unreachable'
        ? unreachable(place, message)
        : null)
  return found === null ? error : new OperatorError(`store: ${found.reason}`, 1, found.fix)
}

const PASSWORD = 'set store.password_file, or PGPASSWORD'

/** The rights of a user that writes rows, and never changes a table. */
function grantRows(user: string): string {
  return (
    `as the owner of the schema: GRANT USAGE ON SCHEMA sidecar TO "${user}"; ` +
    `GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA sidecar TO "${user}"; ` +
    `GRANT USAGE ON ALL SEQUENCES IN SCHEMA sidecar TO "${user}"`
  )
}

/**
 * A user that may read the tables and not write them was found by `run`, and not by `check`.
 * @throws {OperatorError} when the user may not write each table of the store.
 */
export async function assertMayWrite(queries: Queries, url: string): Promise<void> {
  const rights = ['SELECT', 'INSERT', 'UPDATE', 'DELETE']
  const [lacking] = await queries.rows<{ name: string }>(
    `SELECT relname AS name FROM pg_class WHERE relnamespace = to_regnamespace('sidecar') AND NOT CASE relkind
       WHEN 'S' THEN relname <> 'epochs' OR has_sequence_privilege(oid, 'USAGE')
       WHEN 'v' THEN has_table_privilege(oid, 'SELECT')
       WHEN 'r' THEN ${rights.map((right) => `has_table_privilege(oid, '${right}')`).join(' AND ')} ELSE true END LIMIT 1`,
  )
  if (lacking === undefined) return
  const { place, user, database } = partsOf(url)
  throw new OperatorError(
    `store: the user ${user} may not write ${lacking.name} in the database ${database} at ${place}`,
    1,
    grantRows(user),
  )
}

function unreachable(place: string, message: string): Refusal {
  return {
    reason: `no PostgreSQL answers at ${place} (${message})`,
    fix: 'start the server, or correct store.url or PGHOST and PGPORT',
  }
}

function standby(place: string): Refusal {
  return {
    reason: `the server at ${place} is a standby, which accepts no writes`,
    fix: 'name the primary in store.url, or an address that leads to it',
  }
}

function refusalByCode(
  code: string,
  { place, user, database, message }: { place: string; user: string; database: string; message: string },
): Refusal | null {
  switch (code) {
    case 'ECONNREFUSED':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'ENOENT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'ETIMEDOUT':
      return unreachable(place, code)
    case '28P01':
      return {
        reason: `${place} refuses the password of the user ${user}`,
        fix: 'correct the password in store.password_file or PGPASSWORD',
      }
    case '28000':
      return {
        reason: `${place} refuses the user ${user} (${message})`,
        fix: 'create the user (CREATE ROLE … LOGIN), or add a line to pg_hba.conf of the server',
      }
    case '3D000':
      return {
        reason: `there is no database ${database} at ${place}`,
        fix: `correct its name, or create it: CREATE DATABASE "${database}" OWNER "${user}"`,
      }
    case '42501':
      return {
        reason: `the user ${user} lacks permissions in the database ${database} at ${place} (${message})`,
        fix: /database/.test(message)
          ? `GRANT CREATE ON DATABASE "${database}" TO "${user}"`
          : /must be owner/.test(message)
            ? 'start this version once as the owner of the schema sidecar, which changes the tables'
            : `${grantRows(user)}; or, to change the tables too: ALTER SCHEMA sidecar OWNER TO "${user}"`,
      }
    case '25006':
      return {
        reason: `${place} accepts no writes (${message})`,
        fix: 'name the primary in store.url, or run ALTER DATABASE … RESET default_transaction_read_only',
      }
    case '55P03':
      return {
        reason: `a program locks the store in the database ${database} at ${place} (${message})`,
        fix: 'wait for the end of a backup, or of another replica that changes the schema, and start again',
      }
    case '57P03':
      return { reason: `${place} is not ready (${message})`, fix: 'wait until it is, and start again' }
    case '53300':
      return {
        reason: `${place} has no free connection (${message})`,
        fix: 'raise max_connections of the server, or end other programs',
      }
    default:
      return null
  }
}

/** One side requires encryption and the other refuses it, or a certificate is not accepted. */
const TLS: readonly [RegExp, Refusal][] = [
  [
    /no encryption/,
    {
      reason: 'the server accepts only encrypted connections',
      fix: 'add ?sslmode=verify-full to store.url',
    },
  ],
  [
    /does not support SSL/,
    {
      reason: 'the server has no TLS, but store.url or PGSSLMODE requires it',
      fix: 'turn ssl on in postgresql.conf, or set sslmode=disable',
    },
  ],
  [
    /requires a valid client certificate|CERTIFICATE_REQUIRED/i,
    {
      reason: 'the server asks for a client certificate',
      fix: 'add sslcert=FILE and sslkey=FILE to store.url',
    },
  ],
  [
    /ALTNAME_INVALID/,
    {
      reason: "the server's certificate is for another host name",
      fix: 'use the name of the certificate in store.url, or sslmode=verify-ca',
    },
  ],
  [
    /SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET_ISSUER)|CERT_UNTRUSTED/,
    {
      reason: "this machine does not trust the authority of the server's certificate",
      fix: 'add sslrootcert=FILE, with the certificate of the authority, to store.url',
    },
  ],
  [
    /CERT_(?:HAS_EXPIRED|NOT_YET_VALID)/,
    {
      reason: "the server's certificate is not valid now",
      fix: 'renew it, or set the clock of this machine',
    },
  ],
]
