import type { Figures, Measure } from './measure.ts'

/** A work that the sidecar and, where there is one, the baseline are put through. One may give several figures. */
export interface Scenario {
  measures: readonly Measure[]
  open(bench: Bench): Promise<Contest>
}

/** The processes of a scenario, made ready once; each run has a sidecar or a baseline of its own. */
export interface Contest {
  ours(): Promise<Figures>
  /** Absent where nothing is compared. */
  baseline?(): Promise<Figures>
}

export interface Bench {
  /** Settings of PostgreSQL, `name=value`, in place of its defaults. */
  readonly settings: readonly string[]
  /** A new folder on the disk that is measured. */
  folder(): string
  /** How many of `count` to send: all, or fewer while the bench itself is tried. */
  scaled(count: number): number
  /** Ends with the scenario, in reverse order. */
  use<T extends AsyncDisposable>(resource: T): T
}

/** As a user of callbacks would have it: signed, and with the concurrency that the baseline has too. */
export function handlerAt(url: string, batch = 1) {
  return {
    name: 'app',
    url,
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    concurrency: 32,
    batch: { max: batch },
  }
}
