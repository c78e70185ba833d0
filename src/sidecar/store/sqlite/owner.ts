import { StoreError } from '../error.ts'
import type { OwnerMark } from './owner-page.ts'
import type { Sqlite } from './open.ts'

/**
 * The right to write a store. Opening takes it: the row of `owner` gets the next epoch, and a former owner that still runs
 * (a second process, started after the lock file was removed) is fenced: its next transaction finds the row moved and
 * is rolled back. Readers do not take it.
 */
export class Ownership {
  readonly epoch: number
  readonly owner: string
  /** Called once, when it is lost. */
  onLost: ((error: StoreError) => void) | null = null
  readonly #commit
  readonly #row
  #lost: StoreError | null = null

  /** Takes it. A file then has all that was committed before, so that the log beside it begins with this owner. */
  constructor(db: Sqlite) {
    const taken = db
      .prepare<[], Pick<OwnerMark, 'owner' | 'epoch'>>(
        `INSERT INTO owner VALUES (1, lower(hex(randomblob(16))), '', 1, 1)
         ON CONFLICT (one) DO UPDATE SET
           owner = excluded.owner, previous = owner, epoch = epoch + 1, commits = commits + 1
         RETURNING owner, epoch`,
      )
      .get()
    if (taken === undefined) throw new StoreError('damaged')
    db.pragma('wal_checkpoint(TRUNCATE)')
    this.epoch = taken.epoch
    this.owner = taken.owner
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
    if (this.#commit.run(this.epoch, this.owner).changes !== 1) throw this.lose(this.#fenced())
  }

  /** For a process that has nothing to write. */
  check(): void {
    const row = this.#row.get()
    if (row?.epoch !== this.epoch || row.owner !== this.owner) this.lose(this.#fenced())
  }

  /** Whether `owner` took the store from us, or from the process that took it from us. */
  isSucceededBy(owner: string): boolean {
    try {
      const row = this.#row.get()
      return row !== undefined && row.epoch > this.epoch && [row.owner, row.previous].includes(owner)
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
    return new StoreError('fenced', new Error(`epoch ${this.epoch}, now ${this.#row.get()?.epoch ?? 'none'}`))
  }
}
