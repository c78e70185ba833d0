import { hash } from 'node:crypto'
import { sameSecret } from '../../std/signature.ts'
import { Problem } from './problem.ts'

/** Wrong tokens of one peer that get 401, and milliseconds until one more does; the others get 429. */
const PEER = { burst: 10, refill: 1000 }
/**
 * How many wrong tokens are compared before every token gets 429. Peers that sent a wrong one before share one limit,
 * all other peers another. A person types at a login; a program that reads the API must not fail because another one
 * floods it.
 */
export const AT_LOGIN = { burst: 50, refill: 20 }
export const AT_API = { burst: 500, refill: 2 }
/** Peers that are remembered; a further one replaces the oldest. */
const PEERS = 1024

interface Rate {
  burst: number
  refill: number
}

/** A rate limit: a bucket of tokens that refills. */
class Bucket {
  readonly #rate: Rate
  #left: number
  #at: number

  constructor(rate: Rate, now: number) {
    this.#rate = rate
    this.#left = rate.burst
    this.#at = now
  }

  /** Milliseconds until a token of the bucket is free. */
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
 * Limits how fast the admin token can be guessed, in constant memory. Behind an ingress all clients are one peer. So
 * the wrong tokens of a peer change only the answers to wrong ones: after ten, 429 more often than 401. Every token is
 * compared, and the right one passes, until so many wrong ones come per second that a limit for all is reached. Above
 * it, the right token gets 429 as well: if it did not, an answer other than 429 would identify it, and guesses would
 * have no limit. A right token does not count, and neither does the same wrong one again.
 */
export class Guesses {
  readonly #steady: () => number
  readonly #peers = new Map<string, { wrong: Bucket; last: string }>()
  readonly #wrongBefore: Bucket
  readonly #neverWrong: Bucket

  /** `steady`: milliseconds of a clock that never jumps. */
  constructor(steady: () => number, compared: Rate) {
    this.#steady = steady
    this.#wrongBefore = new Bucket(compared, steady())
    this.#neverWrong = new Bucket(compared, steady())
  }

  /**
   * Whether `given` by `peer` is the secret.
   * @throws {Problem} 429 for a wrong one of a peer that gave many, and for any that is not compared.
   */
  isRight(secret: string, given: string, peer: string): boolean {
    const now = this.#steady()
    const digest = hash('sha256', given, 'base64')
    const known = this.#peers.get(peer)
    if (known?.last === digest) return sameSecret(secret, given)
    const all = known === undefined ? this.#neverWrong : this.#wrongBefore
    const pause = all.wait(now)
    if (pause > 0) throw tooMany('too many wrong tokens: this one was not compared', pause)
    if (sameSecret(secret, given)) return true
    all.take()
    const wrong = known?.wrong ?? new Bucket(PEER, now)
    this.#remember(peer, { wrong, last: digest })
    const wait = wrong.wait(now)
    if (wait > 0) throw tooMany('this is not the admin token, and there were too many wrong ones', wait)
    wrong.take()
    return false
  }

  #remember(peer: string, entry: { wrong: Bucket; last: string }): void {
    this.#peers.delete(peer)
    const [oldest] = this.#peers.keys()
    if (oldest !== undefined && this.#peers.size >= PEERS) this.#peers.delete(oldest)
    this.#peers.set(peer, entry)
  }
}

function tooMany(detail: string, wait: number): Problem {
  return new Problem('rate_limit_exceeded', detail, {
    headers: { 'retry-after': String(Math.ceil(wait / 1000)) },
  })
}
