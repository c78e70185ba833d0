import { hash } from 'node:crypto'
import type { Clock } from './clock.ts'
import type { Answer } from './http.ts'
import type { OpenDetails } from './profile/details.ts'
import { refuse } from './refusal.ts'

/** Answers kept at once; the oldest are removed first. */
const MOST_KEPT = 20_000

/** The stored answer. */
export interface FirstAnswer {
  readonly id: string
  readonly at: number
  readonly fingerprint: string
  readonly answer: Answer
}

interface Kept {
  at: number
  fingerprint: string
  answer: Promise<Answer>
  settled?: FirstAnswer
}

/**
 * A request with a known idempotency value gets the first answer again, and has no further effect. Refusals are not kept,
 * so that a client may correct a refused request and send it again.
 */
export class Idempotency {
  readonly #clock: Clock
  readonly #details: OpenDetails['idempotency']
  readonly #kept = new Map<string, Kept>()

  constructor(clock: Clock, details: OpenDetails['idempotency']) {
    this.#clock = clock
    this.#details = details
  }

  /**
   * `scope` identifies the token and the operation's address, `body` the bytes of the request.
   * @throws {Refusal} 409 for the same value with another body, if the profile refuses it.
   */
  once(scope: string, key: string, body: string, act: () => Promise<Answer>): Promise<Answer> {
    const id = `${scope} ${key}`
    const fingerprint = hash('sha256', body)
    const first = this.#kept.get(id)
    if (first !== undefined && this.#clock.now() - first.at < this.#details.keptMs) {
      if (first.fingerprint !== fingerprint && this.#details.otherBody === 'conflict') {
        throw refuse('conflict', `the idempotency value ${JSON.stringify(key)} came with another body before`)
      }
      return first.answer
    }
    const answer = act()
    const kept: Kept = { at: this.#clock.now(), fingerprint, answer }
    this.#kept.delete(id)
    this.#kept.set(id, kept)
    this.#trim()
    answer.then(
      (made) => void (kept.settled = { id, at: kept.at, fingerprint, answer: made }),
      () => this.#kept.delete(id),
    )
    return answer
  }

  /** Oldest first. */
  answered(): FirstAnswer[] {
    return [...this.#kept.values()].flatMap(({ settled }) => settled ?? [])
  }

  restore(first: FirstAnswer): void {
    const { id, at, fingerprint, answer } = first
    this.#kept.set(id, { at, fingerprint, answer: Promise.resolve(answer), settled: first })
  }

  #trim(): void {
    const [oldest] = this.#kept.keys()
    if (oldest !== undefined && this.#kept.size > MOST_KEPT) this.#kept.delete(oldest)
  }
}
