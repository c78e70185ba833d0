import type { Chance } from './chance.ts'

/** So much happens at one moment only where something goes round for ever. */
const STANDSTILL = 100_000

/** Whose an entry is: once its owner is dead it does not happen. */
export interface Owner {
  readonly alive: boolean
  /** A process that stands still: what is due until then happens when it wakes. */
  readonly asleepUntil: number
}

export interface Entry {
  at: number
  /** When it was to happen: a process that sleeps on is late twice. */
  readonly due: number
  tie: number
  readonly order: number
  readonly owner: Owner | null
  readonly run: () => void
  cancelled: boolean
}

/**
 * What is going to happen, by (virtual time, seeded tie, order of making). Between two entries every promise is
 * followed to its end: `process.nextTick` runs only when no microtask is left, and costs half a microsecond.
 */
export class Agenda {
  /** True time, milliseconds since the epoch; the clocks of the sidecar and of the service are off it. */
  now: number
  readonly #ties: Chance
  readonly #heap: Entry[] = []
  #made = 0
  happened = 0
  /** What happened at this very moment. */
  #still = 0

  constructor(start: number, ties: Chance) {
    this.now = start
    this.#ties = ties
  }

  in(ms: number, run: () => void, owner: Owner | null = null): Entry {
    const due = this.now + Math.max(0, ms)
    const entry: Entry = {
      at: due,
      due,
      tie: this.#ties.next(),
      order: this.#made++,
      owner,
      run,
      cancelled: false,
    }
    this.#push(entry)
    return entry
  }

  /**
   * Lets things happen up to `until`, or until `stop` says so after one of them.
   * @throws {Error} when time stands still.
   */
  async runUntil(until: number, stop: () => boolean): Promise<void> {
    await microtasks()
    while (!stop()) {
      const next = this.#heap[0]
      if (next === undefined || next.at > until) {
        this.now = Math.max(this.now, until)
        return
      }
      this.#pop()
      const { owner } = next
      if (next.cancelled || owner?.alive === false) continue
      if (owner !== null && owner.asleepUntil > next.at) {
        // Late, but in the order in which it was due.
        next.tie = (next.due % 1e9) / 1e9 - 1
        next.at = owner.asleepUntil
        this.#push(next)
        continue
      }
      this.#still = this.now === next.at ? this.#still + 1 : 0
      if (this.#still > STANDSTILL) throw new Error('time stands still')
      this.now = next.at
      this.happened++
      next.run()
      await microtasks()
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap
    let at = heap.push(entry) - 1
    while (at > 0) {
      const up = (at - 1) >> 1
      const parent = heap[up]
      if (parent === undefined || !isBefore(entry, parent)) break
      heap[at] = parent
      at = up
    }
    heap[at] = entry
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let at = 0
    for (;;) {
      let child = at * 2 + 1
      let least = heap[child]
      if (least === undefined) break
      const other = heap[child + 1]
      if (other !== undefined && isBefore(other, least)) {
        child++
        least = other
      }
      if (!isBefore(least, last)) break
      heap[at] = least
      at = child
    }
    heap[at] = last
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  if (a.at !== b.at) return a.at < b.at
  return a.tie === b.tie ? a.order < b.order : a.tie < b.tie
}

function microtasks(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve))
}
