import type { Clock } from './ports.ts'

/** Below this the offset is as good as none, milliseconds: the `Date` header has whole seconds. */
const NOTICEABLE = 1000
/** How much later than the earliest that its answers allow the service's clock is believed to be, at most, milliseconds. */
const LATER = 750

/**
 * The service's clock less ours, learned from the `Date` of its answers.
 *
 * One answer says little: a whole second, read somewhere between sending and receiving. It does bound the offset from
 * both sides, though, and the bounds of all answers together close in on it. When they contradict each other, a clock
 * was moved, and learning begins again. What is learned is the distance to our steady clock: when a person sets our wall
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

  /** How uncertain it is, milliseconds; infinite until a response has a `Date`. */
  get open(): number {
    return this.#high - this.#low
  }

  /**
   * From our wall clock, milliseconds; 0 until an answer came, and while the difference is too small to notice. The middle
   * of what is open, unless that is much, since a service was slow or we slept. Then rather too early: by a clock that is
   * believed too late, deadlines are over before their time, and what came after our start was there before it.
   */
  from(clock: Pick<Clock, 'now' | 'steady'>): number {
    if (this.open === Infinity) return 0
    const there = this.#low + Math.min(this.open / 2, LATER)
    const offset = Math.round(there + clock.steady() - clock.now())
    return Math.abs(offset) < NOTICEABLE ? 0 : offset
  }
}
