import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'
import { OperatorError } from '../../../std/errors.ts'
import { NO_OWNER, OWNER_SCHEMA, readOwnerPage, type OwnerMark } from './owner-page.ts'

/** The owner marks in the committed transactions of a WAL. In this file, "log" means the WAL. */
interface LogMarks {
  pageSize: number
  /** Number of the page with the owner's row; null: no transaction wrote it. */
  page: number | null
  first: OwnerMark
  last: OwnerMark
  owners: ReadonlySet<string>
}

/** How often a log is read again while a running process appends to it. */
const TRIES = 5
const LOG_HEADER = 32
const FRAME_HEADER = 24
const MAGIC = [0x377f0682, 0x377f0683]
/** Offset of `user_version` in the header of a database. */
const USER_VERSION = 60

/**
 * An operator replaces `sidecar.db` with a backup and leaves the `sidecar.db-wal` of a killed process: SQLite would
 * write the pages of the WAL into the backup. A WAL does not show which file it belongs to. So each commit updates the
 * row of `owner`, and the file must be at a commit that the WAL continues.
 *
 * Reads bytes only, before SQLite opens either file. Do not call it in a process that has the database open: to close a
 * file frees all locks of the process on it.
 * @throws {OperatorError} when the WAL belongs to another database than `file`. Neither is changed.
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

/** `unmarked`: the log has no owner mark and the file has one, so nothing shows whether they belong together. */
function relate(file: string): 'own' | 'foreign' | 'unmarked' {
  for (let tries = 1; ; tries++) {
    const log = readLog(`${file}-wal`)
    if (log === null || continues(readMain(file, log), log)) return 'own'
    // A running process may have changed both between the two reads.
    if (tries === TRIES || readLog(`${file}-wal`)?.last.commits === log.last.commits)
      return log.page === null ? 'unmarked' : 'foreign'
  }
}

/**
 * Whether `log` continues `main`: it begins at the commit of `main` or before, and the same owner or the next one wrote
 * it.
 */
function continues(main: { version: number; mark: OwnerMark }, log: LogMarks): boolean {
  // Versions before OWNER_SCHEMA wrote logs without an owner mark, beside databases without one.
  if (log.page === null) return main.version < OWNER_SCHEMA
  const { owner, commits } = main.mark
  const related = log.owners.has(owner) || log.first.previous === owner
  return related && commits >= log.first.commits - 1 && commits <= log.last.commits
}

function replaced(file: string): string {
  return (
    `store: ${file} was replaced, and ${file}-wal has commits of the earlier database: SQLite would mix ` +
    'the two. Nothing was changed. To continue with the new file, rename the log: ' +
    `mv ${file}-wal ${file}.old-wal && rm -f ${file}-shm. To continue with the earlier database, put it back ` +
    'beside its log. "session-sidecar store restore BACKUP" puts a backup in place, and leaves no log.'
  )
}

function unmarked(file: string): string {
  return (
    `store: ${file}-wal has no commit of this version: another program wrote it (or an earlier version), and nothing ` +
    `in it shows whether it belongs to ${file}. Nothing was changed. If that program still has the database open, ` +
    'close it. If it wrote to this file, keep its commits: ' +
    `sqlite3 ${file} 'PRAGMA wal_checkpoint(TRUNCATE)'. If the file was put there later, rename the log: ` +
    `mv ${file}-wal ${file}.old-wal && rm -f ${file}-shm`
  )
}

function deleted(file: string): string {
  return (
    `store: ${file} does not exist, but ${file}-wal has commits of it: an empty store in its place would lose them. ` +
    'Nothing was changed. To continue with the database, put it back beside its log, or restore a backup: ' +
    '"session-sidecar store restore BACKUP". To start with an empty store, rename the log: ' +
    `mv ${file}-wal ${file}.old-wal && rm -f ${file}-shm`
  )
}

/** Reads the log; null: it is missing, or has no complete transaction. */
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
      // The rest belongs to an earlier use of the log. SQLite also verifies a checksum of each frame; a torn frame ends
      // no transaction.
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

/** Reads version and owner mark of the file, without its log. */
function readMain(file: string, { pageSize, page }: LogMarks): { version: number; mark: OwnerMark } {
  return reading(file, { version: 0, mark: NO_OWNER }, (main) => {
    const version = main.at(USER_VERSION, 4)?.readUInt32BE(0) ?? 0
    const bytes = page === null ? null : main.at((page - 1) * pageSize, pageSize)
    return { version, mark: (bytes === null ? null : readOwnerPage(bytes)) ?? NO_OWNER }
  })
}

interface Bytes {
  /** Bytes of the file; null: it is shorter. The next call overwrites the buffer. */
  at(offset: number, length: number): Buffer | null
}

function reading<T>(path: string, absent: T, read: (bytes: Bytes) => T): T {
  let handle: number
  try {
    handle = openSync(path, 'r')
  } catch {
    // The file is missing; or SQLite cannot open it either and reports why.
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
