import path from 'node:path'
import { messageOf } from '../../std/errors.ts'
import type { DatabaseTls, StoreUrl } from './config.ts'
import type { Environment } from './expand.ts'
import { isLoopback } from './listen.ts'
import { readSmallFile } from './secrets.ts'

/** Bytes; a bundle of authorities is a few hundred kilobytes. */
const MAX_CERTIFICATES = 2 * 1024 * 1024
/** The parameters of an address that count, as PostgreSQL's own programs name them, and their variables. */
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
  /** Of `store.password` or its file; null: of the address or of PGPASSWORD. */
  password: string | null
  /** The folder that paths of certificates start from. */
  base: string
  env: Environment
}

/** The address of a database: what it leaves out, the variables `PG…` say. `blame` receives a fault, which repeats no value. */
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
  if (url.searchParams.has('password')) blame('must hold no parameter "password": set password_file')
  if (url.password !== '' && password !== null) blame('holds a password beside password or password_file')
  const place = host.startsWith('/') ? encodeURIComponent(host) : host
  return {
    kind: 'postgres',
    url: `postgres://${encodeURIComponent(user)}@${place}:${url.port || of('port') || '5432'}/${encodeURIComponent(database)}`,
    password: password ?? (decoded(url.password) || (env['PGPASSWORD'] ?? '') || null),
    tls: await tlsOf(of, base, blame),
  }
}

async function tlsOf(
  of: (name: 'sslmode' | 'sslrootcert' | 'sslcert' | 'sslkey') => string,
  base: string,
  blame: (message: string) => void,
): Promise<DatabaseTls | null> {
  const mode = of('sslmode') || 'disable'
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
  // As PostgreSQL's own programs: an authority that is given is checked in any mode.
  const checked =
    mode === 'verify-full' ? 'name' : mode === 'verify-ca' || ca !== null ? 'authority' : 'nothing'
  return { checked, ca, cert, key }
}

/** What is allowed and unsafe, or without effect. */
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

/** A part of an address; unchanged when it is not percent-encoded. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
