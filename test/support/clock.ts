import type { Clock, Timer } from '../../src/std/ports.ts'

interface Due {
  at: number
  order: number
  run: () => void
}

/**
 * A clock that stands still until it is moved. Timers fire in the order of their time, then of their making; `soon` is
 * the end of the current chain of promises, so that a world of fakes and SQLite runs without one real wait.
 */
export class VirtualClock implements Clock {
  #now: number
  #steady: number
  #made = 0
  readonly #timers = new Set<Due>()

  constructor(start = 1_763_701_200_000) {
    this.#now = start
    this.#steady = start
  }

  now(): number {
    return this.#now
  }

  steady(): number {
    return this.#steady
  }

  after(ms: number, run: () => void): Timer {
    const due: Due = { at: this.#steady + Math.max(0, ms), order: this.#made++, run }
    this.#timers.add(due)
    return { cancel: () => void this.#timers.delete(due) }
  }

  soon(run: () => void, _turn?: 'same' | 'next'): void {
    queueMicrotask(run)
  }

  /** Timers that have not fired. */
  get waiting(): number {
    return this.#timers.size
  }

  /** Milliseconds until the next timer; null when there is none. */
  get next(): number | null {
    const first = this.#first()
    return first === null ? null : first.at - this.#steady
  }

  /** Lets everything happen that needs no time: promises are followed to their end. */
  async settle(): Promise<void> {
    await new Promise<void>((resolve) => void setImmediate(resolve))
  }

  /** Moves both clocks on, firing timers at their time and following what they start. */
  async advance(ms: number): Promise<void> {
    await this.settle()
    const end = this.#steady + ms
    for (let first = this.#first(); first !== null && first.at <= end; first = this.#first()) {
      this.#move(Math.max(0, first.at - this.#steady))
      this.#timers.delete(first)
      first.run()
      await this.settle()
    }
    this.#move(end - this.#steady)
    await this.settle()
  }

  /** A machine that slept: time is over, then every timer that fell due fires once. */
  async leap(ms: number): Promise<void> {
    this.#move(ms)
    await this.advance(0)
  }

  /** The wall clock is set; waiting timers are not affected. */
  jump(ms: number): void {
    this.#now += ms
  }

  #move(ms: number): void {
    this.#now += ms
    this.#steady += ms
  }

  #first(): Due | null {
    let first: Due | null = null
    for (const due of this.#timers) {
      if (first === null || due.at < first.at || (due.at === first.at && due.order < first.order)) first = due
    }
    return first
  }
}
