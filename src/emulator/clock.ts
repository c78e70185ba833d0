import { setImmediate as nextLoop } from 'node:timers/promises'

/** The longest wait of an `advance` for work under way, in real milliseconds. */
const SETTLE_MS = 250
/** Node cuts longer timers to 1 ms; an early wake-up only checks again. */
const LONGEST_TIMER_MS = 2_147_483_647

export interface Timer {
  cancel(): void
}

interface Entry {
  due: number
  order: number
  run: (() => void) | undefined
}

/**
 * The service's time: the machine's monotonic clock and an offset that `advance` moves. Every deadline, pause, lifetime
 * and retry of the emulator uses it, so that hours can pass in a test.
 */
export class Clock {
  readonly #startedAt: number
  #offset = 0
  #order = 0
  #heap: Entry[] = []
  #wake: NodeJS.Timeout | undefined
  #closed = false
  readonly #busy = new Set<Promise<unknown>>()

  /** `startAt`: the time to begin at, milliseconds since the epoch. */
  constructor(startAt: number = Date.now()) {
    this.#startedAt = startAt - performance.now()
  }

  /** Whole milliseconds since the epoch. */
  now(): number {
    return Math.floor(this.#exact())
  }

  /** Runs `run` once, `ms` from now. */
  after(ms: number, run: () => void): Timer {
    const entry: Entry = { due: this.#exact() + Math.max(0, ms), order: this.#order++, run }
    if (!this.#closed) {
      push(this.#heap, entry)
      if (this.#heap[0] === entry) this.#arm()
    }
    return { cancel: () => void (entry.run = undefined) }
  }

  /** Runs `run` every `ms` until cancelled. */
  every(ms: number, run: () => void): Timer {
    let timer: Timer
    const again = (): void => {
      timer = this.after(ms, again)
      run()
    }
    timer = this.after(ms, again)
    return { cancel: () => timer.cancel() }
  }

  /** Resolves after `ms`; rejects with the signal's reason when it is aborted first. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error)
      const stop = (): void => {
        timer.cancel()
        reject(signal.reason as Error)
      }
      const timer = this.after(ms, () => {
        signal.removeEventListener('abort', stop)
        resolve()
      })
      signal.addEventListener('abort', stop, { once: true })
    })
  }

  /**
   * Registers work that `advance` waits for before more time passes (a webhook attempt, a step of
   * the agent).
   */
  during(work: Promise<unknown>): void {
    const settled: Promise<unknown> = work.then(
      () => this.#busy.delete(settled),
      () => this.#busy.delete(settled),
    )
    this.#busy.add(settled)
  }

  /**
   * Advances the clock by `ms` at once. Every timer that becomes due runs at its own time, in
   * order, and the work that it starts may finish before the next timer. Resolves when the new time
   * is reached.
   */
  async advance(ms: number): Promise<void> {
    const target = this.#exact() + ms
    await this.#settle()
    for (let next = this.#heap[0]; next !== undefined && next.due <= target; next = this.#heap[0]) {
      this.#offset += Math.max(0, next.due - this.#exact())
      if (this.#runDue()) await this.#settle()
    }
    this.#offset += Math.max(0, target - this.#exact())
    this.#arm()
  }

  /** Removes every timer. */
  close(): void {
    this.#closed = true
    this.#heap = []
    clearTimeout(this.#wake)
  }

  #exact(): number {
    return this.#startedAt + performance.now() + this.#offset
  }

  async #settle(): Promise<void> {
    const limit = performance.now() + SETTLE_MS
    await nextLoop()
    await nextLoop()
    while (this.#busy.size > 0 && performance.now() < limit) await nextLoop()
  }

  #arm(): void {
    clearTimeout(this.#wake)
    const next = this.#heap[0]
    if (next === undefined || this.#closed) return
    const delay = Math.min(LONGEST_TIMER_MS, Math.max(0, next.due - this.#exact()))
    this.#wake = setTimeout(() => this.#runDue(), delay)
    this.#wake.unref()
  }

  /** Runs due timers; true if any ran. */
  #runDue(): boolean {
    let ran = false
    for (let next = this.#heap[0]; next !== undefined && next.due <= this.#exact(); next = this.#heap[0]) {
      pop(this.#heap)
      const run = next.run
      if (run === undefined) continue
      next.run = undefined
      ran = true
      run()
    }
    this.#arm()
    return ran
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.due < b.due || (a.due === b.due && a.order < b.order)
}

function push(heap: Entry[], entry: Entry): void {
  let at = heap.push(entry) - 1
  while (at > 0) {
    const up = (at - 1) >> 1
    const parent = heap[up]
    if (parent === undefined || !before(entry, parent)) break
    heap[at] = parent
    at = up
  }
  heap[at] = entry
}

function pop(heap: Entry[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  let at = 0
  for (;;) {
    let down = 2 * at + 1
    const left = heap[down]
    const right = heap[down + 1]
    if (left === undefined) break
    let child = left
    if (right !== undefined && before(right, left)) {
      child = right
      down += 1
    }
    if (!before(child, last)) break
    heap[at] = child
    at = down
  }
  heap[at] = last
}
