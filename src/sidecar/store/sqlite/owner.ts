import { StoreError } from '../../../core/store-error.ts'
import type { OwnerMark } from './owner-page.ts'
import type { Sqlite } from './open.ts'
import type { Lease } from '../../../core/lease.ts'
import type { Clock } from '../../../std/ports.ts'
import { codeOf } from '../../../std/errors.ts'
import type { Checkpoints } from './log.ts'

/**
 * The right to write a store. The lock file is removed, and a second process is started: its opening gives the row of
 * `owner` the next epoch. The first process is fenced, because its next transaction finds another epoch and is rolled back.
 * Readers do not take this right.
 */
export class Ownership {
  /** What is claimed in this store is claimed under it. */
  readonly lease: Lease
  /** Called once, when it is lost. */
  onLost: ((error: StoreError) => void) | null = null
  readonly #commit
  readonly #row
  #lost: StoreError | null = null

  /**
   * Takes it. A file then has all that was committed before, so that the log beside it begins with this owner.
   * `recover` writes in the same transaction: a start that a full disk stops there leaves the store to a former owner
   * that still runs.
   */
  constructor(db: Sqlite, recover: () => void = () => undefined) {
    const take = db.prepare<[], Pick<OwnerMark, 'owner' | 'epoch'>>(
      `INSERT INTO owner VALUES (1, lower(hex(randomblob(16))), '', 1, 1)
       ON CONFLICT (one) DO UPDATE SET
         owner = excluded.owner, previous = owner, epoch = epoch + 1, commits = commits + 1
       RETURNING owner, epoch`,
    )
    const taken = db
      .transaction(() => {
        const row = take.get()
        recover()
        return row
      })
      .immediate()
    if (taken === undefined) throw new StoreError('damaged')
    emptyLog(db)
    this.lease = taken
    this.#commit = db.prepare<[number, string]>(
      'UPDATE owner SET commits = commits + 1 WHERE epoch = ? AND owner = ?',
    )
    this.#row = db.prepare<[], Pick<OwnerMark, 'owner' | 'previous' | 'epoch'>>(
      'SELECT owner, previous, epoch FROM owner',
    )
  }

  /**
   * Inside each transaction that writes: counts it, so that every log shows which commits it holds.
   * @throws {StoreError} when another process has taken the store.
   */
  confirm(): void {
    const { epoch, owner } = this.lease
    if (this.#commit.run(epoch, owner).changes !== 1) throw this.lose(this.#fenced())
  }

  /** For a process that has nothing to write. */
  check(): void {
    const row = this.#row.get()
    if (row === undefined || !this.holds(row)) this.lose(this.#fenced())
  }

  /** Whether what was claimed under `lease` is claimed still. */
  holds({ epoch, owner }: Lease): boolean {
    return epoch === this.lease.epoch && owner === this.lease.owner
  }

  /** Whether `owner` took the store from us, or from the process that took it from us. */
  isSucceededBy(owner: string): boolean {
    try {
      const row = this.#row.get()
      return row !== undefined && row.epoch > this.lease.epoch && [row.owner, row.previous].includes(owner)
    } catch {
      // A file that was overwritten is no database any more.
      return false
    }
  }

  /** Why nothing may be written any more; null: it may. */
  get lost(): StoreError | null {
    return this.#lost
  }

  /** @returns why it was lost first. */
  lose(error: StoreError): StoreError {
    if (this.#lost !== null) return this.#lost
    this.#lost = error
    this.onLost?.(error)
    return error
  }

  #fenced(): StoreError {
    return new StoreError(
      'fenced',
      new Error(`epoch ${this.lease.epoch}, now ${this.#row.get()?.epoch ?? 'none'}`),
    )
  }
}

/** A full disk may refuse the file what the log has. The former owner is fenced by now: this one goes on with the log as it is. */
function emptyLog(db: Sqlite): void {
  try {
    db.pragma('wal_checkpoint(TRUNCATE)')
  } catch (error) {
    if (codeOf(error) !== 'SQLITE_FULL') throw error
  }
}

/** The steady time is written down so often, milliseconds. */
const NOTED = 1000
/** The checkpoint with the steady time of the last commit, to the second. */
export const STEADY = 'steady'

/**
 * What waits in the store is due by the steady clock, which starts at the wall clock. When a person set that back between
 * two processes, all of it would wait for as long: it is moved back with the clock. Part of the transaction that takes the
 * store.
 */
export function recoverTime(db: Sqlite, checkpoints: Checkpoints, clock: Clock): void {
  const last = Number(checkpoints.get(STEADY) ?? 0)
  const back = Math.floor(last - clock.steady())
  if (back > 0) {
    for (const table of ['hints', 'lanes', 'calls']) {
      db.prepare(`UPDATE ${table} SET due_at = max(0, due_at - ?)`).run(back)
    }
    // How long a turn's artifacts have been awaited says when to look again.
    db.prepare('UPDATE turns SET final_read_at = max(0, final_read_at - ?) WHERE settled = 0').run(back)
    checkpoints.set(STEADY, String(last - back))
  }
}

/** @returns what notes the steady time, inside a transaction. */
export function keepTime(checkpoints: Checkpoints, clock: Clock): () => void {
  let noted = 0
  return () => {
    const now = clock.steady()
    if (now - noted < NOTED) return
    noted = now
    checkpoints.set(STEADY, String(Math.floor(now)))
  }
}
