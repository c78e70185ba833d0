import { access, constants, open, stat } from 'node:fs/promises'
import path from 'node:path'
import type { Config, StoreUrl } from '../../sidecar/config/config.ts'
import { strandedStore } from '../../sidecar/config/store-folder.ts'
import { codeOf, messageOf, OperatorError } from '../../std/errors.ts'
import { isOfAnother } from '../../sidecar/past.ts'
import { addressOf } from '../../sidecar/store.ts'
import { glanceAtStore, inspectStore } from '../../sidecar/store/sqlite/inspect.ts'
import { count } from '../text.ts'
import { checkDisk } from './disk.ts'
import { fail, ok, warn, type Finding } from './finding.ts'

const MAGIC = 'SQLite format 3\0'

/** Largest store in bytes that is checked completely here; `store check` has no limit. */
const READ_THROUGH = 64 * 1024 * 1024

/**
 * Whether the store can be opened for writing and is sound, and whether the disk has space. It is
 * only read, so a running sidecar is not disturbed.
 */
export async function checkStore(config: Config, file: string): Promise<Finding[]> {
  const { url } = config.store
  const stranded = strandedStore(url, (old) => isOfAnother(old, config.service.baseUrl))
  if (stranded !== null) return [fail('store', stranded.reason.replace(/^store: /, ''), stranded.fix ?? '')]
  const finding = await storeFinding(url, file)
  if (url.kind !== 'sqlite' || url.path === ':memory:') return [finding]
  const folder = await nearestFolder(url.path).catch(() => null)
  return folder === null ? [finding] : [finding, await checkDisk(folder)]
}

async function storeFinding(url: StoreUrl, file: string): Promise<Finding> {
  if (url.kind === 'postgres') return await databaseFinding(url)
  if (url.path === ':memory:')
    return fail(
      'store',
      'sqlite::memory: loses everything at the end of the process',
      'set store.url to a file',
    )
  try {
    const existing = await magicOf(url.path)
    if (existing !== null && existing !== '' && existing !== MAGIC) {
      return fail('store', `${url.path} is not a SQLite database`, 'set store.url to another file')
    }
    await access(existing === null ? await nearestFolder(url.path) : url.path, constants.W_OK)
    if (existing === null || existing === '') return ok('store', `${url.path} can be created`)
    return await soundness(url.path, file)
  } catch (error) {
    if (error instanceof OperatorError) {
      const said = error.message.replace(/^store: /, '').replace(/\.$/, '')
      return fail('store', said, 'nothing was changed; "session-sidecar run" would refuse it')
    }
    return fail(
      'store',
      `${url.path} is not writable: ${messageOf(error)}`,
      'correct store.url, or the permissions of its directory',
    )
  }
}

const POOLED =
  'the connection goes through a pooler, so statements are not prepared, and replicas find the changes of others within a second'

/** Reports what `run` would find in the database. */
async function databaseFinding(url: Extract<StoreUrl, { kind: 'postgres' }>): Promise<Finding> {
  const { glanceAtDatabase } = await import('../../sidecar/store/postgres/inspect.ts')
  try {
    const { version, schema, newest, held, mayMigrate, pooled } = await glanceAtDatabase(addressOf(url))
    const text = `PostgreSQL ${version}, ${url.url}`
    const state =
      schema === 0
        ? 'no store yet: the first start makes it'
        : `schema ${schema}${schema < newest ? ` (the next start migrates it to ${newest})` : ''}`
    if (schema > newest)
      return fail(
        'store',
        `${text}, schema ${schema}: this program knows schemas up to ${newest}`,
        'run the version of the program that wrote this store',
      )
    if (!mayMigrate && schema < newest)
      return fail(
        'store',
        `${text}, ${state}, but its user may not create tables`,
        `GRANT CREATE ON DATABASE ${new URL(url.url).pathname.slice(1)} TO ${new URL(url.url).username}`,
      )
    return ok(
      'store',
      `${text}, ${state}, ${held ? 'in use by a sidecar' : 'not in use'}${pooled ? `; ${POOLED}` : ''}`,
    )
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return fail('store', error.reason.replace(/^store(?:\.url)?: /, ''), error.fix ?? 'correct store.url')
  }
}

async function soundness(path: string, file: string): Promise<Finding> {
  const { size } = await stat(path)
  if (size > READ_THROUGH) {
    const [altered] = glanceAtStore(path)
    if (altered !== undefined) return fail('store', `${path} is damaged: ${altered}`, 'restore a backup')
    return ok('store', `${path} is writable; "session-sidecar store check -c ${file}" checks all of it`)
  }
  const { problems, facts, dead } = inspectStore(path)
  const [problem] = problems
  if (problem !== undefined) {
    const more = problems.length > 1 ? `, and ${problems.length - 1} more` : ''
    return fail('store', `${path} is damaged: ${problem}${more}`, 'restore a backup')
  }
  return dead === 0
    ? ok('store', `${path} is writable and sound, ${count(facts, 'fact')}`)
    : warn(
        'store',
        `${path} is sound, with ${count(dead, 'dead letter')}`,
        'fix the handler, then "session-sidecar deliveries retry --dead"',
      )
}

/** The first bytes of a file; null when there is none. */
async function magicOf(file: string): Promise<string | null> {
  try {
    await using handle = await open(file, 'r')
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAGIC.length), 0, MAGIC.length, 0)
    return buffer.toString('latin1', 0, bytesRead)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null
    throw error
  }
}

/** The closest existing directory above `file`; the others are created when the store is opened. */
async function nearestFolder(file: string): Promise<string> {
  let folder = path.dirname(file)
  for (;;) {
    try {
      await access(folder)
      return folder
    } catch (error) {
      if (folder === path.dirname(folder)) throw error
      folder = path.dirname(folder)
    }
  }
}
