import { codeOf } from '../../core/errors.ts'
import type { Clock } from '../../core/ports.ts'
import { StoreError } from '../error.ts'
import type { Sqlite } from './open.ts'

interface Write {
  run(): unknown
  /** Called once the write is durable, before anybody else runs. */
  committed(result: unknown): void
  failed(error: unknown): void
}

/**
 * Group commit: writes that arrive together share one transaction and so one fdatasync. The promise stays per write: it
 * settles after its transaction is on disk.
 */
export class Committer {
  readonly #db: Sqlite
  readonly #clock: Clock
  readonly #observe: (seconds: number) => void
  readonly #note: () => void
  readonly #begin
  readonly #commit
  readonly #rollback
  #queue: Write[] = []
  #scheduled = false

  /** `note` takes part in every transaction. */
  constructor(db: Sqlite, clock: Clock, observe: (seconds: number) => void, note: () => void) {
    this.#db = db
    this.#note = note
    this.#clock = clock
    this.#observe = observe
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#rollback = db.prepare('ROLLBACK')
  }

  /** `effect` changes memory according to what was written; it runs only after the commit. */
  write<T>(run: () => T, effect?: (result: T) => void): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({
        run,
        committed: (result) => {
          effect?.(result as T)
          resolve(result as T)
        },
        failed: reject,
      })
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#clock.soon(() => this.flush())
  }

  flush(): void {
    this.#scheduled = false
    const writes = this.#queue
    if (writes.length === 0) return
    this.#queue = []
    const started = this.#clock.steady()
    try {
      this.#transact(writes)
    } catch (error) {
      // One bad write must not take the others with it: each gets a transaction of its own.
      if (writes.length === 1) writes[0]?.failed(explain(error))
      else for (const write of writes) this.#alone(write)
    }
    this.#observe((this.#clock.steady() - started) / 1000)
  }

  #alone(write: Write): void {
    try {
      this.#transact([write])
    } catch (error) {
      write.failed(explain(error))
    }
  }

  #transact(writes: readonly Write[]): void {
    const results: unknown[] = []
    this.#begin.run()
    try {
      for (const write of writes) results.push(write.run())
      this.#note()
      this.#commit.run()
    } catch (error) {
      // Some faults, a full disk for one, have rolled it back already.
      if (this.#db.inTransaction) this.#rollback.run()
      throw error
    }
    for (const [index, write] of writes.entries()) write.committed(results[index])
  }
}

/** What the driver's error means for whoever asked the store. */
export function explain(error: unknown): unknown {
  const code = codeOf(error)
  if (code.startsWith('SQLITE_FULL') || code.startsWith('SQLITE_IOERR')) return new StoreError('full', error)
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) return new StoreError('busy', error)
  if (code.startsWith('SQLITE_CORRUPT') || code.startsWith('SQLITE_NOTADB'))
    return new StoreError('damaged', error)
  return error
}
