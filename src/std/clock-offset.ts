import type { Clock } from './ports.ts'

/** A smaller offset counts as 0, milliseconds: the `Date` header has whole seconds. */
const NOTICEABLE = 1000
/** The offset is assumed at most this much above its lower bound, milliseconds. */
const LATER = 750

/**
 * The service's clock minus ours, learned from the `Date` of its answers.
 *
 * A request is sent at 10.2 s and answered at 10.6 s with the second 12: the service's clock is between 1.4 s and 2.8 s
 * ahead. Each answer gives such bounds, and together they become narrow. If they contradict each other, a clock was
 * moved, and learning begins again. The offset is to our steady clock, so that setting our wall clock does not change it.
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

  /** The width of the bounds, milliseconds; infinite until a response has a `Date`. */
  get open(): number {
    return this.#high - this.#low
  }

  /**
   * The offset to our wall clock, milliseconds; 0 before the first answer, and if it is below one second. It is the
   * middle of the bounds. If they are far apart, because the service was slow or we slept, it is near the lower one.
   * With an offset that is too large, deadlines would end too early, and events after our start would count as older.
   */
  from(clock: Pick<Clock, 'now' | 'steady'>): number {
    if (this.open === Infinity) return 0
    const there = this.#low + Math.min(this.open / 2, LATER)
    const offset = Math.round(there + clock.steady() - clock.now())
    return Math.abs(offset) < NOTICEABLE ? 0 : offset
  }
}
