import { ServiceError } from '../core/errors.ts'
import { backoff } from '../std/backoff.ts'
import type { Clock, Random } from '../std/ports.ts'
import { SLOT_FREED, type StreamSlot } from './slot.ts'

/** The maximum delay of the next connection by the service's `retry:`, milliseconds. */
const RETRY_CAP = 60_000
/** A connection that was open for this long counts as useful, even without data, milliseconds. */
const OF_USE = 60_000
const BACKOFF = { base: 1000, max: 60_000 }

/** The result of a connection. */
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
   * A connection of a former process may still hold a slot: so the first connection after a failure waits for it too.
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

  /** The service sent `retry:`. It is a minimum, because the slot of the ended connection is freed late. */
  retry(ms: number): void {
    this.#retry = Math.min(RETRY_CAP, Math.max(0, ms))
    this.#floor = this.#retry
  }

  opened(): void {
    this.#openedAt = this.#clock.steady()
    this.#floor = this.#retry
  }

  /** The service closed the connection. If it closes each one at once, a `retry:` of 0 does not shorten the wait. */
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
   * The replay stopped at its limit: the rest is requested at once. A replay that stops where it
   * began would loop for ever.
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
    const wait = this.failed()
    if (!(error instanceof ServiceError)) return wait
    // A request that our own budget refused gives no information about the slots.
    const noSlot = error.code === 'rate_limit_exceeded' && !error.unsent
    return Math.max(wait, noSlot ? this.#slot.refused(now) : 0, error.retryAfter ?? 0)
  }

  /** We closed the connection. */
  left(): void {
    if (this.#openedAt !== null) this.#end(this.#clock.steady(), 'broken')
  }

  /** There was no connection: a step before it failed. */
  failed(): number {
    this.#failures++
    return backoff(BACKOFF, this.#failures, this.#random, this.#floor)
  }

  #end(now: number, how: Parameters<StreamSlot['ended']>[1]): void {
    this.#openedAt = null
    this.#slot.ended(now, how)
  }
}
