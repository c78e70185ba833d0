import { codeOf } from '../../../std/errors.ts'
import type { Clock, Timer } from '../../../std/ports.ts'
import type { Lease } from '../../../core/lease.ts'
import type { Committed } from '../../../core/store.ts'
import { StoreError } from '../../../core/store-error.ts'
import type { Checkpoints } from './log.ts'
import type { Sqlite } from './open.ts'
import type { OwnerMark } from './owner-page.ts'

/** How soon a write must be on disk. */
export type Urgency =
  /**
   * Written before the other writes of its transaction, and as soon as possible: a tool runs as soon as its call is
   * stored, and its result is posted as soon as it is stored.
   */
  | 'first'
  | 'now'
  /**
   * Survives a crash of the process. A power failure may lose it: a transaction of such writes alone does not wait for
   * the disk.
   */
  | 'relaxed'
  /** Waits for another write to share a transaction with, `patience` milliseconds at most. */
  | { patience: number }

interface Write {
  run(): unknown
  urgency: Urgency
  /** Called when the write is durable, before any other code runs. */
  committed(result: unknown): void
  failed(error: unknown): void
}

/** How long a write waits while another program locks the database, milliseconds. */
const HELD = 5000
/** The time between two tries meanwhile, milliseconds. */
const AGAIN = 50
/**
 * A write with the urgency `first` that comes sooner than this after a commit waits for the next turn of the event
 * loop, milliseconds. So many calls share a commit.
 */
const APART = 0.5

/** Receives every commit and every failed write. */
export interface Witness {
  /** After each commit: its duration in seconds. */
  onCommit?: (seconds: number) => void
  /** After each write that failed. */
  onRefused?: (error: unknown) => void
}

/** What is part of every transaction. */
export interface Part {
  /** Called after the writes, in the same transaction. */
  note(): void
  /** Called after the commit. */
  committed(): void
}

interface CommitterParts {
  db: Sqlite
  clock: Clock
  witness: Witness
  ownership: Ownership
  checkpoints: Checkpoints
  part: Part
}

/**
 * Group commit: writes that arrive together share one transaction and so one fdatasync. Each write has its own promise,
 * which settles when the transaction is on disk.
 */
export class Committer {
  readonly #db: Sqlite
  readonly #clock: Clock
  readonly #witness: Witness
  readonly #part: Part
  readonly #ownership: Ownership
  readonly #noteTime: () => void
  readonly #begin
  readonly #commit
  readonly #rollback
  #queue: Write[] = []
  #scheduled = false
  /** Steady milliseconds: of the last commit. */
  #endedAt = -Infinity
  /** Steady milliseconds: since when another program locks the database. */
  #heldSince: number | null = null
  #again: Timer | null = null
  /** The timer of patient writes, while no other write waits. */
  #patience: { timer: Timer; until: number } | null = null

  constructor({ db, clock, witness, ownership, checkpoints, part }: CommitterParts) {
    this.#db = db
    this.#part = part
    this.#ownership = ownership
    this.#noteTime = keepTime(checkpoints, clock)
    this.#clock = clock
    this.#witness = witness
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#rollback = db.prepare('ROLLBACK')
  }

  /** `run` is called inside the transaction. `effect` updates memory; it runs only after the commit. */
  write<T>(run: () => T, effect?: (result: T) => void, urgency: Urgency = 'now'): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const write: Write = {
        run,
        urgency,
        committed: (result) => {
          effect?.(result as T)
          resolve(result as T)
        },
        failed: (error) => {
          const meaning = explain(error)
          this.#witness.onRefused?.(meaning)
          reject(meaning)
        },
      }
      if (urgency === 'first') this.#queue.unshift(write)
      else this.#queue.push(write)
      if (typeof urgency === 'object') this.#wait(urgency.patience)
      else if (urgency === 'first') this.#hurry()
      else this.#schedule()
    })
  }

  /** In this turn of the event loop, unless a commit has just ended or waits for another program. */
  #hurry(): void {
    if (this.#heldSince !== null || this.#clock.steady() - this.#endedAt < APART) return this.#schedule()
    this.#clock.soon(() => this.flush(), 'same')
  }

  /** The write with the shortest wait sets the timer: an ack with 50 ms must not delay a frame with 1 ms. */
  #wait(patience: number): void {
    const until = this.#clock.steady() + patience
    if (this.#patience !== null && this.#patience.until <= until) return
    this.#patience?.timer.cancel()
    const timer = this.#clock.after(patience, () => {
      this.#patience = null
      this.#schedule()
    })
    this.#patience = { timer, until }
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#clock.soon(() => this.flush())
  }

  /** Commits the queued writes. `last`: the store closes, so a locked database fails the writes at once. */
  flush(last = false): void {
    this.#scheduled = false
    this.#again?.cancel()
    this.#patience?.timer.cancel()
    this.#patience = null
    const writes = this.#queue
    if (writes.length === 0) return
    this.#queue = []
    try {
      this.#transact(writes)
    } catch (error) {
      if (this.#waits(error, last)) {
        this.#queue = writes.concat(this.#queue)
        this.#scheduled = true
        this.#again = this.#clock.after(AGAIN, () => this.flush())
      }
      // One bad write must not fail the others: each gets a transaction of its own.
      else if (writes.length === 1 || isHeld(error) || error instanceof StoreError)
        for (const write of writes) write.failed(error)
      else for (const write of writes) this.#alone(write)
    }
  }

  /** Whether another program has the database locked and the writes are to be tried again. */
  #waits(error: unknown, last: boolean): boolean {
    if (!isHeld(error)) return false
    const now = this.#clock.steady()
    this.#heldSince ??= now
    if (!last && now - this.#heldSince < HELD) return true
    this.#heldSince = null
    return false
  }

  #alone(write: Write): void {
    try {
      this.#transact([write])
    } catch (error) {
      write.failed(error)
    }
  }

  #transact(writes: readonly Write[]): void {
    if (!writes.every(({ urgency }) => urgency === 'relaxed')) return this.#commitAll(writes)
    this.#db.pragma('synchronous = NORMAL')
    try {
      this.#commitAll(writes)
    } finally {
      this.#db.pragma('synchronous = FULL')
    }
  }

  #commitAll(writes: readonly Write[]): void {
    const results: unknown[] = []
    const started = this.#clock.steady()
    this.#begin.run()
    this.#heldSince = null
    try {
      this.#ownership.confirm()
      for (const write of writes) results.push(write.run())
      this.#noteTime()
      this.#part.note()
      this.#commit.run()
    } catch (error) {
      // SQLite has rolled back by itself after some errors, such as a full disk.
      if (this.#db.inTransaction) this.#rollback.run()
      throw error
    }
    this.#part.committed()
    for (const [index, write] of writes.entries()) write.committed(results[index])
    this.#endedAt = this.#clock.steady()
    this.#witness.onCommit?.((this.#endedAt - started) / 1000)
  }
}

/** What a commit reports before it has changed anything. */
export function createCommitted(): Committed {
  return { facts: [], lanes: [], stale: [], refused: [], sightings: [], hinted: false, newCalls: [] }
}

/** The disk is full, fails, or was remounted read-only. */
const UNWRITABLE = /^SQLITE_(FULL|IOERR|READONLY)/

/** Translates an error of the driver into the `StoreError` that callers of the store handle. */
export function explain(error: unknown): unknown {
  const code = codeOf(error)
  if (UNWRITABLE.test(code)) return new StoreError('full', error)
  if (isHeld(error)) return new StoreError('busy', error)
  if (code.startsWith('SQLITE_CORRUPT') || code.startsWith('SQLITE_NOTADB'))
    return new StoreError('damaged', error)
  return error
}

/** Whether another program has the database locked. */
function isHeld(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(codeOf(error))
}

/**
 * The right to write a store. If an operator removes the lock file and starts a second process, its start writes the
 * next epoch into the row of `owner`. The first process is then fenced: its next transaction finds another epoch and is
 * rolled back. Readers do not take this right.
 */
export class Ownership {
  /** All claims in this store are made under this lease. */
  readonly lease: Lease
  /** Called once, when it is lost. */
  onLost: ((error: StoreError) => void) | null = null
  readonly #commit
  readonly #row
  #lost: StoreError | null = null

  /**
   * Takes the store. The file then has everything that was committed before, so the WAL beside it begins with this
   * owner. `recover` writes in the same transaction: if a full disk stops the start there, a former owner that still
   * runs keeps the store.
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
   * Called inside each transaction that writes: counts it, so that every WAL shows which commits it holds.
   * @throws {StoreError} when another process has taken the store.
   */
  confirm(): void {
    const { epoch, owner } = this.lease
    if (this.#commit.run(epoch, owner).changes !== 1) throw this.lose(this.#fenced())
  }

  /** Checks the epoch without a write, for a process that has nothing to write. */
  check(): void {
    const row = this.#row.get()
    if (row === undefined || !this.holds(row)) this.lose(this.#fenced())
  }

  /** Whether what was claimed under `lease` is still claimed. */
  holds({ epoch, owner }: Lease): boolean {
    return epoch === this.lease.epoch && owner === this.lease.owner
  }

  /** Whether `owner` took the store from us, or from the process that took it from us. */
  isSucceededBy(owner: string): boolean {
    try {
      const row = this.#row.get()
      return row !== undefined && row.epoch > this.lease.epoch && [row.owner, row.previous].includes(owner)
    } catch {
      // A file that was overwritten is no longer a database.
      return false
    }
  }

  /** Why nothing may be written any more; null: writes are allowed. */
  get lost(): StoreError | null {
    return this.#lost
  }

  /** @returns the first reason for which the store was lost. */
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

/**
 * On a full disk, the content of the WAL may not fit into the file. The former owner is fenced by now, so this one
 * continues with the WAL as it is.
 */
function emptyLog(db: Sqlite): void {
  try {
    db.pragma('wal_checkpoint(TRUNCATE)')
  } catch (error) {
    if (codeOf(error) !== 'SQLITE_FULL') throw error
  }
}

/** Interval at which the steady time is stored, milliseconds. */
const NOTED = 1000
/** The checkpoint with the steady time of the last commit, to the second. */
export const STEADY = 'steady'

/**
 * Work in the store is due by the steady clock, which starts at the wall clock. If the wall clock is set back while no
 * process runs, all work would wait until it reaches the old time again. So due times are moved back with the clock, in
 * the transaction that takes the store.
 */
export function recoverTime(db: Sqlite, checkpoints: Checkpoints, clock: Clock): void {
  const last = Number(checkpoints.get(STEADY) ?? 0)
  const back = Math.floor(last - clock.steady())
  if (back > 0) {
    for (const table of ['hints', 'lanes', 'calls']) {
      db.prepare(`UPDATE ${table} SET due_at = max(0, due_at - ?)`).run(back)
    }
    // The time for which artifacts have been awaited decides when they are read again.
    db.prepare('UPDATE turns SET final_read_at = max(0, final_read_at - ?) WHERE settled = 0').run(back)
    checkpoints.set(STEADY, String(last - back))
  }
}

/** @returns a function that stores the steady time, inside a transaction. */
function keepTime(checkpoints: Checkpoints, clock: Clock): () => void {
  let noted = 0
  return () => {
    const now = clock.steady()
    if (now - noted < NOTED) return
    noted = now
    checkpoints.set(STEADY, String(Math.floor(now)))
  }
}
