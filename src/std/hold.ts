import type { Clock, Timer } from './ports.ts'

/** Lets urgent work go first: other work waits meanwhile, in its order, and for a limited time. */
export class Hold {
  readonly #clock: Clock
  readonly #longest: number
  readonly #waiting: (() => void)[] = []
  #timer: Timer | null = null

  /** `longest`: milliseconds until a hold ends by itself. */
  constructor(clock: Clock, longest: number) {
    this.#clock = clock
    this.#longest = longest
  }

  /** A hold that has begun is not made longer: other work must not wait for ever. */
  begin(): void {
    this.#timer ??= this.#clock.after(this.#longest, () => this.end())
  }

  /** Begins the work that waits. */
  end(): void {
    this.#timer?.cancel()
    this.#timer = null
    for (const work of this.#waiting.splice(0)) work()
  }

  /** `work`, which begins when it is called, or when the hold ends. */
  behind<Given extends unknown[]>(work: (...given: Given) => void): (...given: Given) => void {
    return (...given) => this.#run(() => work(...given))
  }

  #run(work: () => void): void {
    if (this.#timer === null) work()
    else this.#waiting.push(work)
  }
}
