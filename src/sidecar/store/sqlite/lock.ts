import { accessSync, closeSync, constants, existsSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import Database from 'better-sqlite3'
import { codeOf, messageOf, OperatorError } from '../../../std/errors.ts'
import { createFolder, PRIVATE } from '../../../std/folder.ts'
import { explainOpening } from './refusal.ts'

/** How long to wait for a program that only reads, milliseconds: it locks a database without a WAL for a moment. */
const READERS = 1000

const WRITABLE =
  'put the store into a folder that this user may write to: store.url, or for dev the working folder'

/**
 * Facts hold texts of agents and people: only our user may read them. SQLite gives its side files the same mode. An
 * existing file is not opened: to close it would free every lock that this process has on it, also one of another
 * store.
 */
export function createPrivately(file: string): void {
  try {
    createFolder(dirname(file), PRIVATE)
    if (existsSync(file)) accessSync(file, constants.R_OK | constants.W_OK)
    else closeSync(openSync(file, 'a', 0o600))
  } catch (error) {
    throw new OperatorError(`store: cannot open ${file}: ${messageOf(error)}`, 2, WRITABLE)
  }
}

/**
 * Lets only one process use a store. It takes an exclusive lock on a second, empty database, which the kernel frees
 * however the process ends. The store itself stays open to readers (backup, check).
 */
export function lock(file: string): () => void {
  createPrivately(`${file}-lock`)
  const holder = new Database(`${file}-lock`, { timeout: 0 })
  try {
    holder.pragma('locking_mode = EXCLUSIVE')
    holder.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    holder.close()
    if (codeOf(error).startsWith('SQLITE_BUSY')) {
      throw new OperatorError(
        `store: ${file} is in use by another sidecar`,
        1,
        'stop it first, or use another store (store.url)',
      )
    }
    throw explainOpening(error, file)
  }
  return () => holder.close()
}

/**
 * A hard link, or a file that is mounted by itself into a container, is a second name of the database. Our lock and
 * SQLite's WAL go by name, so two processes would write one database without seeing each other. SQLite's own lock is on
 * the file under any name, and can be exclusive only while no other connection is open. The check is needed for a file
 * with several names, and for one without a WAL of this name.
 * @throws {OperatorError} when another process has `file` open.
 */
export function assertOneName(file: string): void {
  const probe = new Database(file, { timeout: READERS })
  try {
    probe.pragma('locking_mode = EXCLUSIVE')
    probe.exec('BEGIN EXCLUSIVE; ROLLBACK')
  } catch (error) {
    // A file that is no database is refused by its caller.
    if (!codeOf(error).startsWith('SQLITE_BUSY')) return
    throw new OperatorError(
      `store: ${file} is in use by another process, maybe under another name (a hard link, or the file mounted by itself ` +
        'into a container). SQLite keeps a log for each name, so the two would damage it. Stop that process; mount the ' +
        'folder, not the file.',
    )
  } finally {
    probe.close()
  }
}
