import { existsSync } from 'node:fs'
import path from 'node:path'
import { OperatorError } from '../../std/errors.ts'
import type { StoreUrl } from './config.ts'
import type { Environment } from './expand.ts'
import type { Folders } from './resolve.ts'

/**
 * The endings of a database and its side files. If a database is moved without its `-wal`, its last commits are lost.
 */
const PARTS = ['', '-wal', '-shm']

/**
 * The folder against which a relative `store.url` is resolved. The image sets SIDECAR_STORE_BASE: there the
 * configuration is mounted read-only, and only /app/data is writable.
 *
 * `former`: where an earlier version may have put the store. That is the working directory, and the folder of the npm
 * package that started us, because npm runs its scripts there.
 */
export function storeFolders(env: Environment): Folders['store'] {
  const own = env['SIDECAR_STORE_BASE'] ?? ''
  const manifest = env['npm_package_json'] ?? ''
  return {
    base: own === '' ? null : own,
    former: [process.cwd(), ...(manifest === '' ? [] : [path.dirname(manifest)])],
  }
}

/**
 * Finds a store of an earlier version. With `-c /etc/app/sidecar.yaml`, run in /srv/app, an earlier version wrote
 * /srv/app/data/sidecar.db. This version would create an empty /etc/app/data/sidecar.db, without cursor and backlog.
 * @param isOther whether a database is known to belong to another configuration.
 * @returns null if the store is in its place, or is new.
 */
export function strandedStore(
  url: StoreUrl,
  isOther: (file: string) => boolean = () => false,
): OperatorError | null {
  if (url.kind !== 'sqlite' || url.path === ':memory:' || existsSync(url.path)) return null
  const old = url.former.find((file) => existsSync(file) && !isOther(file))
  if (old === undefined) return null
  const folder = path.dirname(url.path)
  const parts = PARTS.map((suffix) => old + suffix).filter((file) => existsSync(file))
  const command = `mkdir -p ${shell(folder)} && mv ${[...parts, folder].map(shell).join(' ')}`
  return new OperatorError(
    `store: there is no database at ${url.path}, but one at ${old}, where an earlier version would have created it`,
    2,
    `to start with an empty store, set store.url to sqlite:${url.path}; to use the other, stop its sidecar and move it: ${command}`,
  )
}

/** The text as a shell reads it as one word. */
function shell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
