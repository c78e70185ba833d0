import type { Lease } from '../../../core/lease.ts'
import { StoreError } from '../../../core/store-error.ts'
import type { Clock, Timer } from '../../../std/ports.ts'
import type { Database, Transaction } from './database.ts'

/** Milliseconds: of a lease, between two renewals, and how long before its end its owner stops. */
const TTL = 15_000
const RENEWED = 5_000
const MARGIN = 3_000
/** Milliseconds between two attempts to take a lease that another process has, or to renew one. */
const ASKED = 500

/** The only lease: its owner has every shard, and reads the stream. */
const EVERYTHING = 'leader'

export interface LeaseTime {
  /** By which the lease is renewed and ends. */
  lease: Clock
  /** The clock on which work is due, milliseconds; default: the database's. */
  now?: () => number
}

/** A process that waits for a lease. */
export interface Standby {
  /** Aborted when it is to wait no longer. */
  end: AbortSignal
  /** Called once, when another process has the lease. */
  onStandby: () => void
}

/**
 * The right to write. A lease ends on the database's clock; its owner stops by itself `MARGIN` before that, counted from the
 * time at which it asked for the renewal that succeeded last.
 */
export class Ownership {
  readonly lease: Lease
  /** Called once, when it is lost. */
  onLost: ((error: StoreError) => void) | null = null
  readonly #database: Database
  readonly #clock: Clock
  readonly #now: (() => number) | undefined
  /** Milliseconds between our steady clock and the database's. */
  #offset = 0
  #asked: number
  /** Of transactions: above every one that an earlier owner gave. */
  #number: number
  #timer: Timer | null = null
  #lost: StoreError | null = null

  private constructor(database: Database, time: LeaseTime, taken: { lease: Lease; asked: number }) {
    this.#database = database
    this.#clock = time.lease
    this.#now = time.now
    this.lease = taken.lease
    this.#asked = taken.asked
    this.#number = taken.lease.epoch * 2 ** 32
  }

  /** Takes the lease, or waits until its owner resigns or stops renewing it. */
  static async take(
    database: Database,
    owner: string,
    time: LeaseTime,
    standby: Standby = { end: new AbortController().signal, onStandby: () => undefined },
  ): Promise<Ownership> {
    const { lease: clock } = time
    for (let waits = false; ; waits = true) {
      if (standby.end.aborted) throw new StoreError('closed')
      const asked = clock.steady()
      const [row] = await database.rows<{ epoch: number | null }>(
        'SELECT sidecar.acquire($1, $2, $3::bigint) AS epoch',
        [EVERYTHING, owner, TTL],
      )
      const epoch = row?.epoch ?? null
      if (epoch !== null) {
        const ownership = new Ownership(database, time, { lease: { owner, epoch }, asked })
        await ownership.#synchronise()
        ownership.#renewAfter(RENEWED)
        return ownership
      }
      if (!waits) standby.onStandby()
      await new Promise<void>((resolve) => void clock.after(ASKED, resolve))
    }
  }

  /** The store's clock, milliseconds. */
  now(): number {
    return this.#now?.() ?? this.#clock.steady() + this.#offset
  }

  holds(lease: Lease): boolean {
    return this.#lost === null && lease.epoch === this.lease.epoch && lease.owner === this.lease.owner
  }

  /** Why this process may never write again; null: it has not lost the lease. */
  get lost(): StoreError | null {
    return this.#lost
  }

  /** Why nothing is read or written now. A lease that is over may be renewed: unless another process took it meanwhile. */
  get refusal(): StoreError | null {
    if (this.#lost !== null || this.#clock.steady() <= this.#asked + TTL - MARGIN) return this.#lost
    return new StoreError('unreachable', new Error('the lease could not be renewed in time'))
  }

  /** @returns why it was lost first. */
  lose(error: StoreError): StoreError {
    if (this.#lost !== null) return this.#lost
    this.#lost = error
    this.#timer?.cancel()
    this.onLost?.(error)
    return error
  }

  /**
   * First in each transaction that writes. @returns the number of the transaction.
   * @throws {StoreError} when another process has the lease.
   */
  async confirm(transaction: Transaction): Promise<number> {
    const { refusal } = this
    if (refusal !== null) throw refusal
    try {
      const number = ++this.#number
      await transaction.rows('SELECT sidecar.fence($1, $2::bigint, $3::bigint)', [
        EVERYTHING,
        this.lease.epoch,
        number,
      ])
      return number
    } catch (error) {
      throw error instanceof StoreError && error.kind === 'fenced' ? this.lose(error) : error
    }
  }

  /** Whether a transaction whose COMMIT had no answer was committed; waits for one that is under way. */
  async isCommitted(number: number): Promise<boolean> {
    const [row] = await this.#database.rows<{ last: number }>(
      'SELECT last FROM sidecar.commits WHERE lease = $1 FOR UPDATE',
      [EVERYTHING],
    )
    return row?.last === number
  }

  /** Lets the next process in at once. */
  async resign(): Promise<void> {
    this.#timer?.cancel()
    this.#lost ??= new StoreError('closed')
    const { owner, epoch } = this.lease
    await this.#database.change(
      'UPDATE sidecar.leases SET until = clock_timestamp() WHERE name = $1 AND owner = $2 AND epoch = $3',
      [EVERYTHING, owner, epoch],
    )
  }

  #renewAfter(ms: number): void {
    this.#timer = this.#clock.after(ms, () => void this.#renew())
  }

  async #renew(): Promise<void> {
    const asked = this.#clock.steady()
    const { owner, epoch } = this.lease
    try {
      const renewed = await this.#database.change(
        `UPDATE sidecar.leases SET until = clock_timestamp() + $4::bigint * interval '1 ms'
         WHERE name = $1 AND owner = $2 AND epoch = $3`,
        [EVERYTHING, owner, epoch, TTL],
      )
      if (renewed !== 1) return void this.lose(new StoreError('fenced'))
      this.#asked = asked
      await this.#synchronise()
      if (this.#lost === null) this.#renewAfter(RENEWED)
    } catch {
      if (this.#lost === null) this.#renewAfter(ASKED)
    }
  }

  async #synchronise(): Promise<void> {
    const [row] = await this.#database.rows<{ now: number }>(
      'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
    )
    if (row !== undefined) this.#offset = row.now - this.#clock.steady()
  }
}
