/** An invariant is broken (I1 to I15). */
export class Violation extends Error {
  readonly invariant: string

  constructor(invariant: string, message: string) {
    super(message)
    this.name = 'Violation'
    this.invariant = invariant
  }
}

interface Line {
  at: number
  what: string
  detail: string
}

/** The last lines are kept for people. */
const KEPT = 400

/** What happened, in order. Two runs of one seed have the same hash, or something came in by another door. */
export class Trace {
  #hash = 0x811c9dc5
  #lines: Line[] = []
  #start: number | null = null
  violation: Violation | null = null

  note(at: number, what: string, detail = ''): void {
    this.#start ??= at
    this.#mix(Math.round((at - this.#start) * 1000))
    for (let index = 0; index < what.length; index++) this.#mix(what.charCodeAt(index))
    for (let index = 0; index < detail.length; index++) this.#mix(detail.charCodeAt(index))
    this.#lines.push({ at, what, detail })
    if (this.#lines.length > KEPT * 2) this.#lines = this.#lines.slice(-KEPT)
  }

  #mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ value, 0x01000193)
  }

  /** The first violation counts; what follows from it says less. */
  broken(invariant: string, message: string): void {
    this.violation ??= new Violation(invariant, message)
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, '0')
  }

  /** The last `count` lines that are not of everyday business. */
  tail(count: number): string[] {
    const start = this.#start ?? 0
    return this.#lines
      .filter(({ what }) => !EVERYDAY.test(what))
      .slice(-count)
      .map(({ at, what, detail }) => `${((at - start) / 1000).toFixed(3).padStart(9)} s  ${what} ${detail}`)
  }
}

const EVERYDAY =
  /^(clock\.|store\.(claim|next|checkpoint|release|known|summary|glance|readLane|count|unseen))/
