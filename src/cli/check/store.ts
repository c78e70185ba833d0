import { access, constants, open } from 'node:fs/promises'
import path from 'node:path'
import type { StoreUrl } from '../../config/config.ts'
import { messageOf } from '../../core/errors.ts'
import { fail, ok, type Finding } from './finding.ts'

const MAGIC = 'SQLite format 3\0'

/** Whether the store can be opened for writing. It is only looked at, so a running sidecar is not disturbed. */
export async function checkStore(url: StoreUrl): Promise<Finding> {
  if (url.kind === 'postgres')
    return fail(
      'store',
      'postgres: this version keeps its store in SQLite only',
      'set store.url to sqlite:FILE',
    )
  if (url.path === ':memory:')
    return fail('store', 'sqlite::memory: forgets everything', 'set store.url to a file')
  try {
    const existing = await magicOf(url.path)
    if (existing !== null && existing !== '' && existing !== MAGIC) {
      return fail('store', `${url.path} is no SQLite database`, 'point store.url somewhere else')
    }
    await access(existing === null ? await nearestFolder(url.path) : url.path, constants.W_OK)
    return ok('store', `${url.path} ${existing === null ? 'can be made' : 'is writable'}`)
  } catch (error) {
    return fail(
      'store',
      `${url.path} is not writable: ${messageOf(error)}`,
      'correct store.url, or the rights of its directory',
    )
  }
}

/** The first bytes of a file; null when there is none. */
async function magicOf(file: string): Promise<string | null> {
  try {
    await using handle = await open(file, 'r')
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAGIC.length), 0, MAGIC.length, 0)
    return buffer.toString('latin1', 0, bytesRead)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

/** The closest directory above `file` that exists: what is between is made when the store is opened. */
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
