import type { Clock } from '../core/ports.ts'

/** Below this the offset is as good as none, milliseconds: the `Date` header has whole seconds. */
const NOTICEABLE = 1000

/**
 * The service's clock less ours, learned from the `Date` of its answers.
 *
 * One answer says little: a whole second, read somewhere between sending and receiving. It does bound the offset from
 * both sides, though, and the bounds of all answers together close in on it. When they contradict each other, a clock
 * was moved, and learning begins again. What is learned is the distance to our steady clock: when somebody sets our wall
 * clock, the service's time stays known.
 */
export class ClockOffset {
  #low = -Infinity
  #high = Infinity

  /** `sent` and `received` are our steady clock, milliseconds. */
  learn(date: string | undefined, sent: number, received: number): void {
    const at = Date.parse(date ?? '')
    if (Number.isNaN(at)) return
    const low = at - received
    const high = at + 1000 - sent
    const disagree = low > this.#high || high < this.#low
    this.#low = disagree ? low : Math.max(this.#low, low)
    this.#high = disagree ? high : Math.min(this.#high, high)
  }

  /** An answer has come that told the time. */
  get known(): boolean {
    return this.#low !== -Infinity
  }

  /** From our wall clock, milliseconds; 0 until an answer came, and while the difference is too small to tell. */
  from(clock: Pick<Clock, 'now' | 'steady'>): number {
    if (!this.known) return 0
    const offset = Math.round((this.#low + this.#high) / 2 + clock.steady() - clock.now())
    return Math.abs(offset) < NOTICEABLE ? 0 : offset
  }
}
