import type { Clock, Timer } from './ports.ts'

/** During a hold, urgent work goes first: other work waits in its order, for a limited time. */
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

  /** Does not extend a hold that has begun: other work must not wait for ever. */
  begin(): void {
    this.#timer ??= this.#clock.after(this.#longest, () => this.end())
  }

  /** Ends the hold, and begins the work that waits. */
  end(): void {
    this.#timer?.cancel()
    this.#timer = null
    for (const work of this.#waiting.splice(0)) work()
  }

  /** @returns `work`, which begins at its call; during a hold, when the hold ends. */
  behind<Given extends unknown[]>(work: (...given: Given) => void): (...given: Given) => void {
    return (...given) => this.#run(() => work(...given))
  }

  #run(work: () => void): void {
    if (this.#timer === null) work()
    else this.#waiting.push(work)
  }
}
