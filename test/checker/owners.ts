import type { Fault } from './history.ts'

/** What one process did for a session, for a call, or as the leader. Times of one clock, milliseconds. */
export interface Act {
  /** Of what only one process at a time may act for. */
  subject: string
  /** The process. */
  owner: string
  from: number
  /** null: it went on until the end. */
  until: number | null
}

export interface RunOf extends Act {
  /** It was marked: an earlier run may have had its effect. */
  uncertain: boolean
  /** The status that was sent in full; null: none was. */
  answered: number | null
}

/** A process that was killed is noticed so late, milliseconds. */
const SLACK = 300

/**
 * I8: two processes never act for one subject at once. `excused`: what the earlier one could not help, such as that it was frozen
 * in the middle.
 */
export function alone(acts: readonly Act[], excused: (earlier: Act, later: Act) => boolean): Fault[] {
  return pairs(acts)
    .filter(([earlier, later]) => later.from < (earlier.until ?? Infinity) - SLACK)
    .filter(([earlier, later]) => earlier.owner !== later.owner && !excused(earlier, later))
    .map(([earlier, later]) => ({
      invariant: 'I8',
      message:
        `${later.owner} acted for ${later.subject} from ${shown(later.from)}, ` +
        `and ${earlier.owner} did from ${shown(earlier.from)} to ${shown(earlier.until)}`,
    }))
}

/** I8 and I5: a second run is marked uncertain, unless the run before is known to have failed. */
export function warned(runs: readonly RunOf[]): Fault[] {
  return pairs(runs)
    .filter(([earlier, later]) => !later.uncertain && !hasFailed(earlier, later.from))
    .map(([earlier, later]) => ({
      invariant: earlier.owner === later.owner ? 'I5' : 'I8',
      message:
        `${later.owner} ran ${later.subject} at ${shown(later.from)} as if it had never run, and ` +
        `${earlier.owner} ran it from ${shown(earlier.from)} to ${shown(earlier.until)} (${earlier.answered})`,
    }))
}

function hasFailed({ answered, until }: RunOf, at: number): boolean {
  // 202: the answer comes later.
  return answered !== null && (answered >= 300 || answered === 202) && (until ?? Infinity) <= at + SLACK
}

/** Each act with each that began later for the same subject. */
function pairs<T extends Act>(acts: readonly T[]): (readonly [T, T])[] {
  return [...Map.groupBy(acts, ({ subject }) => subject).values()].flatMap((one) => {
    const sorted = one.toSorted((a, b) => a.from - b.from)
    return sorted.flatMap((earlier, index) =>
      sorted.slice(index + 1).map((later) => [earlier, later] as const),
    )
  })
}

function shown(at: number | null): string {
  return at === null ? 'the end' : `${(at / 1000).toFixed(3)} s`
}
