import { ServiceError } from '../core/errors.ts'
import { backoff } from '../std/backoff.ts'
import type { Clock, Random } from '../std/ports.ts'
import { SLOT_FREED, type StreamSlot } from './slot.ts'

/** The service's `retry:` delays the next connection by at most this time, milliseconds. */
const RETRY_CAP = 60_000
/** A connection that was open for this long was useful, even without data, milliseconds. */
const OF_USE = 60_000
const BACKOFF = { base: 1000, max: 60_000 }

/** What a connection achieved. */
export interface Brought {
  /** Whether any data was kept. */
  anything: boolean
  /** Whether the next connection begins at a later seq. */
  moved: boolean
}

export interface ReconnectPorts {
  clock: Clock
  random: Random
  /** Shared by all streams under one token. */
  slot: StreamSlot
  /**
   * A connection of an earlier process may still hold a slot: until a connection succeeds, each wait is long enough
   * for the service to free that slot.
   */
  slotInUse: boolean
}

/** How long to wait for the next connection of one stream. All times are milliseconds. */
export class ReconnectPolicy {
  readonly #clock: Clock
  readonly #random: Random
  readonly #slot: StreamSlot
  #floor: number
  /** The last of the service's `retry:`, within the cap. */
  #retry: number = SLOT_FREED
  /** Failures in a row. */
  #failures = 0
  #openedAt: number | null = null

  constructor({ clock, random, slot, slotInUse }: ReconnectPorts) {
    this.#clock = clock
    this.#random = random
    this.#slot = slot
    this.#floor = slotInUse ? SLOT_FREED : 0
  }

  /**
   * The service sent `retry:`. It is a minimum of the wait, because the service frees the slot of an ended connection
   * late.
   */
  retry(ms: number): void {
    this.#retry = Math.min(RETRY_CAP, Math.max(0, ms))
    this.#floor = this.#retry
  }

  opened(): void {
    this.#openedAt = this.#clock.steady()
    this.#floor = this.#retry
  }

  /**
   * The service closed the connection. If it closes every connection at once, the waits become longer, even with a
   * `retry:` of 0.
   */
  closed({ anything, moved }: Brought): number {
    if (anything) this.#failures = 0
    const now = this.#clock.steady()
    const openFor = now - (this.#openedAt ?? now)
    this.#end(now, 'closed')
    if (moved || openFor >= OF_USE) {
      this.#failures = 0
      return this.#floor
    }
    return this.failed()
  }

  /**
   * The replay stopped at its limit: the rest is requested at once. A replay that made no progress waits, because the
   * same request would stop there again.
   */
  stopped({ anything, moved }: Brought): number {
    if (anything) this.#failures = 0
    const now = this.#clock.steady()
    this.#end(now, 'replay_stopped')
    return Math.max(moved ? 0 : Math.max(BACKOFF.base, this.#floor), this.#slot.waitAfterStop(now))
  }

  /** The connection was refused, or broke. */
  broken(error: unknown, { anything }: Pick<Brought, 'anything'>): number {
    if (anything) this.#failures = 0
    const now = this.#clock.steady()
    if (this.#openedAt !== null) this.#end(now, 'broken')
    // Our own budget refused the request, and knows until when. With a backoff the stream stayed closed for 40 s after that.
    if (error instanceof ServiceError && error.unsent)
      return Math.max(BACKOFF.base, this.#floor, error.retryAfter ?? 0)
    const wait = this.failed()
    if (!(error instanceof ServiceError)) return wait
    const noSlot = error.code === 'rate_limit_exceeded'
    return Math.max(wait, noSlot ? this.#slot.refused(now) : 0, error.retryAfter ?? 0)
  }

  /** We closed the connection. */
  left(): void {
    if (this.#openedAt !== null) this.#end(this.#clock.steady(), 'broken')
  }

  /** A step before the connection failed, so none was opened. */
  failed(): number {
    this.#failures++
    return backoff(BACKOFF, this.#failures, this.#random, this.#floor)
  }

  #end(now: number, how: Parameters<StreamSlot['ended']>[1]): void {
    this.#openedAt = null
    this.#slot.ended(now, how)
  }
}
