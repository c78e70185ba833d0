import { closeSync, fstatSync, openSync, readSync, rmSync, statSync, truncateSync, type Stats } from 'node:fs'
import { createThrottledLog } from '../../../std/throttled-log.ts'
import { codeOf } from '../../../std/errors.ts'
import type { Clock, Log, Timer } from '../../../std/ports.ts'
import { StoreError } from '../../../core/store-error.ts'
import { saveCopy } from './copy.ts'
import { OWNER_SCHEMA, readOwnerPage } from './owner-page.ts'
import type { Sqlite } from './open.ts'
import type { Ownership } from './committer.ts'
import { APPLICATION_ID } from './schema.ts'

/** How often the files are checked, milliseconds: commits acknowledged until then may be lost with a deleted file. */
const EVERY = 2000
const HEADER = 100
const USER_VERSION = 60
const ID = 68

type Identity = Pick<Stats, 'dev' | 'ino'>
type Loss = 'deleted' | 'replaced' | 'overwritten' | 'side file'

export interface FileWatch {
  /** Closes the store, saving what only this process still has. */
  close(closeStore: () => Promise<void>): Promise<void>
}

/**
 * An operator runs `rm sidecar.db`, or copies a backup over it, while we run. The open file still works: each commit
 * succeeds, and all of them are gone when the process ends. So the files are compared with those that were opened.
 */
export function watchFile(parts: {
  db: Sqlite
  file: string
  ownership: Ownership
  clock: Clock
  log: Log
}): FileWatch {
  const { db, file, ownership, clock, log } = parts
  // Closed only after the database: to close a file frees all locks of the process on it.
  const main = openSync(file, 'r')
  const opened = fstatSync(main)
  const sides = [`${file}-wal`, `${file}-shm`].map((path) => ({ path, opened: identityOf(path) }))
  const pageSize = Number(db.pragma('page_size', { simple: true }))
  const root = db.prepare<[], number>("SELECT rootpage FROM sqlite_schema WHERE name = 'owner'").pluck().get()
  const begun = ownerOf(main)
  let loss: Loss | null = null
  let timer: Timer | null = null
  let closed = false

  /** The owner in the file without its WAL; null: none. */
  function ownerOf(handle: number): string | null {
    const page = Buffer.alloc(pageSize)
    const read = readSync(handle, page, 0, pageSize, ((root ?? 1) - 1) * pageSize)
    return read < pageSize ? null : (readOwnerPage(page)?.owner ?? null)
  }

  /**
   * Whether the content of the file is no longer ours: a copy was written over it, or a process has opened it under
   * another name and so with another WAL.
   */
  function overwritten(): boolean {
    const owner = ownerOf(main)
    if (owner === ownership.lease.owner || (owner !== null && owner === begun)) return false
    if (owner !== null) return !ownership.isSucceededBy(owner)
    // A `VACUUM` by hand moves the row to another page; the header stays.
    const header = Buffer.alloc(HEADER)
    if (readSync(main, header, 0, HEADER, 0) < HEADER) return true
    return header.readUInt32BE(ID) !== APPLICATION_ID || header.readUInt32BE(USER_VERSION) < OWNER_SCHEMA
  }

  function find(): { loss: Loss; detail: string } | null {
    const now = identityOf(file)
    if (now === null) return { loss: 'deleted', detail: `${file} was deleted` }
    if (!same(now, opened)) return { loss: 'replaced', detail: `${file} is another file now` }
    const side = sides.find((one) => !same(identityOf(one.path), one.opened))
    if (side !== undefined) return { loss: 'side file', detail: `${side.path} was deleted or replaced` }
    if (overwritten()) {
      return {
        loss: 'overwritten',
        detail: `${file} was overwritten, by a copy or by a process that uses it under another name`,
      }
    }
    return null
  }

  const unchecked = createThrottledLog<unknown>(clock, (_times, error) =>
    log.warn({ file, err: error }, 'store: its files could not be checked'),
  )

  const look = (): void => {
    try {
      const found = find()
      if (found === null) ownership.check()
      else {
        loss = found.loss
        // Writes into the file what only the deleted WAL has.
        if (loss === 'side file') db.pragma('wal_checkpoint(PASSIVE)')
        ownership.lose(new StoreError('lost', new Error(found.detail)))
      }
    } catch (error) {
      // A folder that cannot be read for a moment is no sign that the file is gone.
      unchecked(error)
    }
    if (ownership.lost === null) timer = clock.after(EVERY, look)
  }
  timer = clock.after(EVERY, look)

  /** What was deleted is put back; what was replaced is kept beside the new file. */
  async function save(kind: 'deleted' | 'replaced', closeStore: () => Promise<void>): Promise<void> {
    const aside = `${file}.replaced-${new Date(clock.now()).toISOString().replaceAll(/[:.]/g, '-')}`
    const target = kind === 'deleted' ? file : aside
    const closeAndTidy = async (): Promise<void> => {
      await closeStore()
      // SQLite leaves these files if its database no longer has that name. The copy has their content.
      for (const { path, opened: ours } of sides) if (same(identityOf(path), ours)) rmSync(path)
    }
    try {
      await saveCopy(db, target, closeAndTidy)
      if (kind === 'deleted')
        log.error({ file }, 'store: it was deleted while it was in use; this process has written it back')
      else
        log.error(
          { file, kept: aside },
          'store: it was replaced while it was in use; the earlier database is kept, and the next start uses the new file',
        )
    } catch (error) {
      log.error({ file: target, err: error }, 'store: the database of this process could not be saved')
      await closeStore()
    }
  }

  async function closeLost(closeStore: () => Promise<void>): Promise<void> {
    if (loss === 'deleted' || loss === 'replaced') return await save(loss, closeStore)
    // SQLite would write the rest of our WAL into the file that another process has written, so the WAL is emptied.
    const [wal] = sides
    if (overwritten() && wal !== undefined && same(identityOf(wal.path), wal.opened)) truncateSync(wal.path)
    await closeStore()
  }

  return {
    async close(closeStore) {
      if (closed) return
      closed = true
      timer?.cancel()
      try {
        await (ownership.lost === null ? closeStore() : closeLost(closeStore))
      } finally {
        closeSync(main)
      }
    },
  }
}

/** null: there is no such file. */
function identityOf(path: string): Identity | null {
  try {
    return statSync(path)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error))) return null
    throw error
  }
}

function same(one: Identity | null, other: Identity | null): boolean {
  return one?.dev === other?.dev && one?.ino === other?.ino
}
