import type { Agenda } from './agenda.ts'
import type { Chance } from './chance.ts'
import type { Life } from './life.ts'

/** What a slow write takes, and whatever is written after it, milliseconds. */
const SLOW = [20, 300, 1500]
/** After so long a disk says that it takes nothing, milliseconds. */
const REFUSES_AFTER = [0, 20, 300]

/** The disk as one life finds it: it takes writes in order, now and then slowly, and others go on meanwhile. */
export class Disk {
  readonly #life: Life
  readonly #agenda: Agenda
  readonly #chance: Chance
  /** True time. */
  #busyUntil = 0

  constructor(life: Life, agenda: Agenda, chance: Chance) {
    this.#life = life
    this.#agenda = agenda
    this.#chance = chance
  }

  slow(): void {
    this.#busyFor(this.#chance.pick(SLOW))
  }

  /** Settles when it is known that a write failed. */
  refuse(): Promise<void> {
    this.#busyFor(this.#chance.pick(REFUSES_AFTER))
    return new Promise((resolve) => this.#whenFree(resolve))
  }

  /** Runs a write as soon as the disk takes it. */
  write(run: () => void): void {
    this.#agenda.in(0, () => (this.#busyUntil > this.#agenda.now ? this.#whenFree(run) : run()), this.#life)
  }

  #busyFor(ms: number): void {
    this.#busyUntil = Math.max(this.#busyUntil, this.#agenda.now + ms)
  }

  /** What makes it busy meanwhile came later and waits for its own turn. */
  #whenFree(run: () => void): void {
    this.#agenda.in(this.#busyUntil - this.#agenda.now, run, this.#life)
  }
}
