import { isIPv6 } from 'node:net'
import path from 'node:path'
import { messageOf } from '../../std/errors.ts'
import type { DatabaseTls, StoreUrl } from './config.ts'
import type { Environment } from './expand.ts'
import { isLoopback } from './listen.ts'
import { readSmallFile } from './secrets.ts'

/** Bytes. A bundle with the certificates of all public authorities has a few hundred kilobytes. */
const MAX_CERTIFICATES = 2 * 1024 * 1024
/**
 * The parameters of `store.url` that have an effect, and the variable that replaces each one when it is absent. libpq,
 * on which psql is built, uses the same names.
 */
const PARAMETERS = {
  host: 'PGHOST',
  port: 'PGPORT',
  sslmode: 'PGSSLMODE',
  sslrootcert: 'PGSSLROOTCERT',
  sslcert: 'PGSSLCERT',
  sslkey: 'PGSSLKEY',
} as const
const MODES = 'disable, require, verify-ca or verify-full'

export interface DatabaseSource {
  /** `postgres://…` */
  url: string
  /** From `store.password` or its file. null: the password of the address is used, or PGPASSWORD. */
  password: string | null
  /** Relative paths of certificates start from this folder. */
  base: string
  env: Environment
}

/**
 * The address of a database. What `store.url` leaves out comes from the variables `PG…`, such as PGHOST. `blame`
 * receives each fault, whose text repeats no value.
 */
export async function databaseOf(
  { url: text, password, base, env }: DatabaseSource,
  blame: (message: string) => void,
): Promise<Extract<StoreUrl, { kind: 'postgres' }>> {
  const url = new URL(text)
  const of = (name: keyof typeof PARAMETERS): string =>
    url.searchParams.get(name) ?? env[PARAMETERS[name]] ?? ''
  const host = decoded(url.hostname) || of('host') || 'localhost'
  const user = decoded(url.username) || (env['PGUSER'] ?? '')
  const database = decoded(url.pathname.slice(1)) || (env['PGDATABASE'] ?? '') || user
  if (user === '') blame('names no user: postgres://USER@HOST/DATABASE, or set PGUSER')
  if (host.includes(',')) blame('names several hosts: use the one address that leads to the primary')
  if (isIPv6(host) && host.includes('%')) blame('has a zone in its IPv6 address, which is not supported')
  if (url.searchParams.has('password')) blame('must hold no parameter "password": set password_file')
  if (url.password !== '' && password !== null) blame('holds a password beside password or password_file')
  // PGHOST has an IPv6 address without the brackets that it has in a URL.
  const place = host.startsWith('/') ? encodeURIComponent(host) : isIPv6(host) ? `[${host}]` : host
  return {
    kind: 'postgres',
    url: `postgres://${encodeURIComponent(user)}@${place}:${url.port || of('port') || '5432'}/${encodeURIComponent(database)}`,
    password: password ?? (decoded(url.password) || (env['PGPASSWORD'] ?? '') || null),
    // As in libpq: there is no TLS on a Unix socket.
    tls: host.startsWith('/') ? null : await tlsOf(of, base, blame),
  }
}

async function tlsOf(
  of: (name: 'sslmode' | 'sslrootcert' | 'sslcert' | 'sslkey') => string,
  base: string,
  blame: (message: string) => void,
): Promise<DatabaseTls | null> {
  // As in libpq: the authorities of the system sign certificates of anybody, so the name must be checked too.
  const system = of('sslrootcert') === 'system'
  const mode = of('sslmode') || (system ? 'verify-full' : 'disable')
  if (system && mode !== 'verify-full') blame('needs sslmode=verify-full with sslrootcert=system')
  if (!/^(disable|require|verify-ca|verify-full)$/.test(mode)) blame(`its sslmode must be one of ${MODES}`)
  if (mode === 'disable') return null
  const read = async (name: 'sslrootcert' | 'sslcert' | 'sslkey'): Promise<string | null> => {
    const file = of(name)
    if (file === '' || file === 'system') return null
    try {
      return await readSmallFile(path.resolve(base, file), MAX_CERTIFICATES)
    } catch (error) {
      blame(`${name}: ${messageOf(error)}`)
      return null
    }
  }
  const [ca, cert, key] = [await read('sslrootcert'), await read('sslcert'), await read('sslkey')]
  if ((cert === null) !== (key === null)) blame('needs both sslcert and sslkey for a client certificate')
  // With `sslmode=require`, an `sslrootcert` that is given is checked all the same, as in libpq.
  const checked =
    mode === 'verify-full' ? 'name' : mode === 'verify-ca' || ca !== null ? 'authority' : 'nothing'
  return { checked, ca, cert, key }
}

/** Warnings about a `store.url` that is allowed but unsafe, or that has parameters without effect. */
export function cautionsOf(store: StoreUrl, text: string): string[] {
  if (store.kind !== 'postgres') return []
  const unknown = [...new URL(text).searchParams.keys()].filter((name) => !(name in PARAMETERS))
  const found = unknown.map((name) => `has a parameter without effect: "${name}"`)
  const { hostname } = new URL(store.url)
  if (isLoopback(hostname) || decoded(hostname).startsWith('/')) return found
  if (store.tls === null)
    found.push('is without TLS: the password and all facts travel unencrypted; add ?sslmode=verify-full')
  else if (store.tls.checked === 'nothing')
    found.push('has sslmode=require, which does not check who answers; use verify-full')
  return found
}

/** A part of an address, decoded. A part that is not percent-encoded correctly, such as `50%`, stays unchanged. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
