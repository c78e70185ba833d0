import { hash } from 'node:crypto'
import { sameSecret } from '../core/signature.ts'
import { Problem } from './problem.ts'

/** Wrong tokens that one peer may give at once, and milliseconds until it may give one more. */
const PEER = { burst: 10, refill: 1000 }
/** The same for all peers that were wrong before, together; and for all that were not. */
const TOGETHER = { burst: 100, refill: 50 }
/** Peers that are remembered; a further one makes the oldest be forgotten. */
const PEERS = 1024

interface Rate {
  burst: number
  refill: number
}

/** A token bucket. */
class Bucket {
  readonly #rate: Rate
  #left: number
  #at: number

  constructor(rate: Rate, now: number) {
    this.#rate = rate
    this.#left = rate.burst
    this.#at = now
  }

  /** Milliseconds until there is one to take. */
  wait(now: number): number {
    this.#left = Math.min(this.#rate.burst, this.#left + (now - this.#at) / this.#rate.refill)
    this.#at = now
    return this.#left >= 1 ? 0 : (1 - this.#left) * this.#rate.refill
  }

  take(): void {
    this.#left -= 1
  }
}

/**
 * Limits how fast the admin token can be guessed, in constant memory. One program tries 500 tokens a second: past ten
 * wrong ones its address waits a second for each further one, and nothing that it gives meanwhile is compared. A right
 * token costs nothing. Neither does the same wrong one again, so that a program with an old token locks nobody out.
 * Peers that were never wrong do not share their rate with those that were.
 */
export class Guesses {
  readonly #steady: () => number
  readonly #peers = new Map<string, { wrong: Bucket; last: string }>()
  readonly #wrongBefore: Bucket
  readonly #neverWrong: Bucket

  /** `steady`: milliseconds of a clock that never jumps. */
  constructor(steady: () => number) {
    this.#steady = steady
    this.#wrongBefore = new Bucket(TOGETHER, steady())
    this.#neverWrong = new Bucket(TOGETHER, steady())
  }

  /**
   * Whether `given` by `peer` is the secret.
   * @throws {Problem} 429 when the peer must wait.
   */
  isRight(secret: string, given: string, peer: string): boolean {
    const now = this.#steady()
    const digest = hash('sha256', given, 'base64')
    const known = this.#peers.get(peer)
    if (known?.last === digest) return sameSecret(secret, given)
    const all = known === undefined ? this.#neverWrong : this.#wrongBefore
    const wait = Math.max(known?.wrong.wait(now) ?? 0, all.wait(now))
    if (wait > 0) {
      throw new Problem('rate_limit_exceeded', 'too many wrong tokens were given; try again later', {
        headers: { 'retry-after': String(Math.ceil(wait / 1000)) },
      })
    }
    if (sameSecret(secret, given)) return true
    const wrong = known?.wrong ?? new Bucket(PEER, now)
    wrong.take()
    all.take()
    this.#remember(peer, { wrong, last: digest })
    return false
  }

  #remember(peer: string, entry: { wrong: Bucket; last: string }): void {
    this.#peers.delete(peer)
    const [oldest] = this.#peers.keys()
    if (oldest !== undefined && this.#peers.size >= PEERS) this.#peers.delete(oldest)
    this.#peers.set(peer, entry)
  }
}
