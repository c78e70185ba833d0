import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { OperatorError } from '../../../std/errors.ts'
import { NO_OWNER, OWNER_SCHEMA, readOwnerPage, type OwnerMark } from './owner-page.ts'

/** What the committed transactions of a log say of who wrote them. */
interface LogMarks {
  pageSize: number
  /** Number of the page with the owner's row; null where no transaction wrote it. */
  page: number | null
  first: OwnerMark
  last: OwnerMark
  owners: ReadonlySet<string>
}

/** A log that a running process appends to is read again so often. */
const TRIES = 5
const LOG_HEADER = 32
const FRAME_HEADER = 24
const MAGIC = [0x377f0682, 0x377f0683]
/** Where the header of a database has what the pragma `user_version` says. */
const USER_VERSION = 60

/**
 * An operator puts a backup in the place of `sidecar.db` and leaves `sidecar.db-wal` of a process that was killed: SQLite
 * would write the log's pages into the backup. The log has no trace of which file it belongs to, so ours do: each commit
 * moves the row of `owner` on, and the file has to be at a point from which the log goes on.
 *
 * Reads bytes only, before SQLite sees either file. Not for a process that has the database open: to close a file frees all
 * locks of a process on it.
 * @throws {OperatorError} when the log belongs to another database than `file`. Both are left alone.
 */
export function assertOwnLog(file: string): void {
  const relation = relate(file)
  if (relation === 'own') return
  if (!existsSync(file)) throw new OperatorError(deleted(file))
  throw new OperatorError(relation === 'foreign' ? replaced(file) : unmarked(file))
}

/** Whether the log beside a file, if there is one, belongs to it. */
export function hasOwnLog(file: string): boolean {
  return relate(file) === 'own'
}

/** `unmarked`: the log has no owner and the file has one, so nothing shows whether they belong together. */
function relate(file: string): 'own' | 'foreign' | 'unmarked' {
  for (let tries = 1; ; tries++) {
    const log = readLog(`${file}-wal`)
    if (log === null || continues(readMain(file, log), log)) return 'own'
    // A process may have moved both on between the two readings.
    if (tries === TRIES || readLog(`${file}-wal`)?.last.commits === log.last.commits)
      return log.page === null ? 'unmarked' : 'foreign'
  }
}

/** Whether `log` begins where `main` is, or before, and was written by who wrote that or by the next owner. */
function continues(main: { version: number; mark: OwnerMark }, log: LogMarks): boolean {
  // A log without an owner is of an older version, which knew none, and so is its database.
  if (log.page === null) return main.version < OWNER_SCHEMA
  const { owner, commits } = main.mark
  const related = log.owners.has(owner) || log.first.previous === owner
  return related && commits >= log.first.commits - 1 && commits <= log.last.commits
}

function replaced(file: string): string {
  return (
    `store: ${file} was replaced, and ${file}-wal holds commits of the database that was there before: SQLite would mix ` +
    'the two. Both were left as they are. To go on with the file that is there now, move the log away: ' +
    `mv ${file}-wal ${file}.old-wal && rm -f ${file}-shm. To go on with the database that was there before, put it back ` +
    'beside its log. "session-sidecar store restore BACKUP" puts a backup in place without leaving a log behind.'
  )
}

function unmarked(file: string): string {
  return (
    `store: ${file}-wal holds no commit of a sidecar: another program wrote it (or a version before this one), and nothing ` +
    `in it shows whether it belongs to ${file}. Both were left as they are. If that program still has the database open, ` +
    'close it. If it wrote to this very file, keep its commits: ' +
    `sqlite3 ${file} 'PRAGMA wal_checkpoint(TRUNCATE)'. If the file was put there since, move the log away: ` +
    `mv ${file}-wal ${file}.old-wal && rm -f ${file}-shm`
  )
}

function deleted(file: string): string {
  return (
    `store: ${file} is not there, and ${file}-wal holds commits of it: an empty store in its place would lose them. ` +
    'Nothing was changed. To go on with the database, put it back beside its log, or restore a backup: ' +
    '"session-sidecar store restore BACKUP". To start with an empty store, move the log away: ' +
    `mv ${file}-wal ${file}.old-wal && rm -f ${file}-shm`
  )
}

/** null: it is not there, or no transaction in it is complete. */
function readLog(path: string): LogMarks | null {
  return reading(path, null, (log) => {
    const header = log.at(0, LOG_HEADER)
    if (header === null || !MAGIC.includes(header.readUInt32BE(0))) return null
    const size = header.readUInt32BE(8)
    const salts = Buffer.from(header.subarray(16, 24))
    let page: number | null = null
    let whole = false
    const marks: OwnerMark[] = []
    let pending: { page: number; mark: OwnerMark } | null = null
    for (let at = LOG_HEADER; ; at += FRAME_HEADER + size) {
      const frame = log.at(at, FRAME_HEADER + size)
      // What follows is of an earlier round. SQLite goes by the checksum of each frame as well; a torn one ends no transaction.
      if (frame === null || !frame.subarray(8, 16).equals(salts)) break
      const mark = readOwnerPage(frame.subarray(FRAME_HEADER))
      if (mark !== null) pending = { page: frame.readUInt32BE(0), mark }
      const ends = frame.readUInt32BE(4) !== 0
      if (!ends) continue
      whole = true
      if (pending !== null) {
        page = pending.page
        marks.push(pending.mark)
      }
      pending = null
    }
    if (!whole) return null
    const owners = new Set(marks.map(({ owner }) => owner))
    return { pageSize: size, page, first: marks[0] ?? NO_OWNER, last: marks.at(-1) ?? NO_OWNER, owners }
  })
}

/** What the file alone says, without its log. */
function readMain(file: string, { pageSize, page }: LogMarks): { version: number; mark: OwnerMark } {
  return reading(file, { version: 0, mark: NO_OWNER }, (main) => {
    const version = main.at(USER_VERSION, 4)?.readUInt32BE(0) ?? 0
    const bytes = page === null ? null : main.at((page - 1) * pageSize, pageSize)
    return { version, mark: (bytes === null ? null : readOwnerPage(bytes)) ?? NO_OWNER }
  })
}

interface Bytes {
  /** null: the file ends before. The next call overwrites what this one gave. */
  at(offset: number, length: number): Buffer | null
}

function reading<T>(path: string, absent: T, read: (bytes: Bytes) => T): T {
  let handle: number
  try {
    handle = openSync(path, 'r')
  } catch {
    // Not there; or SQLite cannot open it either, and says why.
    return absent
  }
  try {
    const stats = fstatSync(handle)
    if (!stats.isFile()) return absent
    const { size } = stats
    let buffer = Buffer.alloc(0)
    return read({
      at(offset, length) {
        if (offset + length > size) return null
        if (buffer.length < length) buffer = Buffer.alloc(length)
        const got = readSync(handle, buffer, 0, length, offset)
        return got === length ? buffer.subarray(0, length) : null
      },
    })
  } finally {
    closeSync(handle)
  }
}
