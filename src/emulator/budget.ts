import type { Clock } from './clock.ts'

export type BucketName = 'creation' | 'reads'

/** The state of a bucket after a request, for the response. */
export interface BudgetState {
  bucket: BucketName
  limit: number
  remaining: number
  /** Seconds until the bucket is full again. */
  resetSeconds: number
}

/** An allowance that refills continuously up to `burst` (rule LIM-36). */
export class Bucket {
  readonly #clock: Clock
  readonly #burst: number
  readonly #perSecond: number
  #level: number
  #at: number

  constructor(clock: Clock, burst: number, perSecond: number) {
    this.#clock = clock
    this.#burst = burst
    this.#perSecond = perSecond
    this.#level = burst
    this.#at = clock.now()
  }

  /** Takes one. Returns false, and takes none, when less than one is left. */
  take(): boolean {
    this.#refill()
    if (this.#level < 1) return false
    this.#level -= 1
    return true
  }

  release(): void {
    this.#level = Math.min(this.#burst, this.#level + 1)
  }

  /** Whole seconds until one can be taken, at least 1. */
  retryAfter(): number {
    this.#refill()
    return Math.max(1, Math.ceil((1 - this.#level) / this.#perSecond))
  }

  state(bucket: BucketName): BudgetState {
    this.#refill()
    const resetSeconds = Math.ceil((this.#burst - this.#level) / this.#perSecond)
    return { bucket, limit: this.#burst, remaining: Math.floor(this.#level), resetSeconds }
  }

  #refill(): void {
    const now = this.#clock.now()
    this.#level = Math.min(this.#burst, this.#level + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
  }
}

/** The two buckets of every token. */
export class Budgets {
  readonly #make: (name: BucketName) => Bucket
  readonly #byToken = new Map<string, Record<BucketName, Bucket>>()

  constructor(
    clock: Clock,
    amounts: { creationBurst: number; creationPerSecond: number; readsBurst: number; readsPerSecond: number },
  ) {
    this.#make = (name) =>
      name === 'creation'
        ? new Bucket(clock, amounts.creationBurst, amounts.creationPerSecond)
        : new Bucket(clock, amounts.readsBurst, amounts.readsPerSecond)
  }

  of(tokenId: string, name: BucketName): Bucket {
    let buckets = this.#byToken.get(tokenId)
    if (buckets === undefined) {
      buckets = { creation: this.#make('creation'), reads: this.#make('reads') }
      this.#byToken.set(tokenId, buckets)
    }
    return buckets[name]
  }
}
