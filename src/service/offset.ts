/** Below this the offset is as good as none, milliseconds: the `Date` header has whole seconds. */
const NOTICEABLE = 1000

/**
 * The service's clock less ours, learned from the `Date` of its answers.
 *
 * One answer says little: a whole second, read somewhere between sending and receiving. It does bound the offset from
 * both sides, though, and the bounds of all answers together close in on it. When they contradict each other, a clock
 * was moved, and learning begins again.
 */
export class ClockOffset {
  #low = -Infinity
  #high = Infinity

  /** `sent` and `received` are our wall clock, milliseconds. */
  learn(date: string | undefined, sent: number, received: number): void {
    const at = Date.parse(date ?? '')
    // Our own clock jumped in between: nothing to learn.
    if (Number.isNaN(at) || received < sent) return
    const low = at - received
    const high = at + 1000 - sent
    const disagree = low > this.#high || high < this.#low
    this.#low = disagree ? low : Math.max(this.#low, low)
    this.#high = disagree ? high : Math.min(this.#high, high)
  }

  /** Milliseconds; 0 until an answer came, and while the difference is too small to tell. */
  get milliseconds(): number {
    if (this.#low === -Infinity) return 0
    const middle = Math.round((this.#low + this.#high) / 2)
    return Math.abs(middle) < NOTICEABLE ? 0 : middle
  }
}
