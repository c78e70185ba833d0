import type { Clock, Timer } from '../../../src/std/ports.ts'

interface Due {
  at: number
  run: () => void
}

/** A clock that stands still until it is moved. */
export class ManualClock implements Clock {
  #time: number
  #due: Due[] = []

  constructor(time = 1_763_701_200_000) {
    this.#time = time
  }

  now(): number {
    return this.#time
  }

  steady(): number {
    return this.#time
  }

  after(ms: number, run: () => void): Timer {
    const due = { at: this.#time + Math.max(0, ms), run }
    this.#due.push(due)
    return { cancel: () => void (this.#due = this.#due.filter((other) => other !== due)) }
  }

  soon(run: () => void): void {
    setImmediate(run)
  }

  /** Timers that have not fired. */
  get waiting(): number {
    return this.#due.length
  }

  /** Milliseconds until the next timer. */
  get next(): number {
    return Math.min(...this.#due.map(({ at }) => at)) - this.#time
  }

  advance(ms: number): void {
    const end = this.#time + ms
    for (;;) {
      const [first] = this.#due.filter(({ at }) => at <= end).sort((one, other) => one.at - other.at)
      if (first === undefined) break
      this.#due = this.#due.filter((other) => other !== first)
      this.#time = first.at
      first.run()
    }
    this.#time = end
  }
}
