import { codeOf } from '../../../std/errors.ts'
import type { Clock, Timer } from '../../../std/ports.ts'
import { StoreError } from '../../../core/store-error.ts'
import type { Sqlite } from './open.ts'

/** How soon a write must be on disk. */
export type Urgency =
  /**
   * Before the other writes of its transaction, and soonest: a tool runs as soon as its call is stored, and its result is
   * posted as soon as it is stored.
   */
  | 'first'
  | 'now'
  /**
   * Survives a crash of the process. A power failure may lose it: a transaction of such writes alone does not wait for
   * the disk.
   */
  | 'relaxed'
  /** It waits for another write to share a transaction with, `patience` milliseconds at most. */
  | { patience: number }

interface Write {
  run(): unknown
  urgency: Urgency
  /** Called when the write is durable, before any other code runs. */
  committed(result: unknown): void
  failed(error: unknown): void
}

/** How long a write waits while another program has the database locked, and how often it tries, milliseconds. */
const HELD = 5000
const AGAIN = 50
/** Urgent writes sooner than this after a commit wait for the next turn, so that those of many calls share one, milliseconds. */
const APART = 0.5

/** Receives every commit and every failed write. */
export interface Witness {
  /** After each commit: its duration in seconds. */
  onCommit?: (seconds: number) => void
  /** After each write that failed. */
  onRefused?: (error: unknown) => void
}

/** Checks and writes that are part of every transaction. */
export interface Part {
  /** Before the writes. @throws {StoreError} when this process may not write. */
  confirm(): void
  /** After the writes, in the same transaction. */
  note(): void
  /** After the commit. */
  committed(): void
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
  readonly #begin
  readonly #commit
  readonly #rollback
  #queue: Write[] = []
  #scheduled = false
  /** Steady milliseconds: of the last commit. */
  #endedAt = -Infinity
  /** Steady milliseconds: since when another program holds the database. */
  #heldSince: number | null = null
  #again: Timer | null = null
  /** The timer of patient writes, while no other write waits. */
  #patience: { timer: Timer; until: number } | null = null

  constructor(db: Sqlite, clock: Clock, witness: Witness, part: Part) {
    this.#db = db
    this.#part = part
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

  /** The least patient of those that wait has the timer: an ack with 50 ms must not hold up a frame with 1 ms. */
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
      this.#part.confirm()
      for (const write of writes) results.push(write.run())
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
