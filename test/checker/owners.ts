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
const SLACK = 50

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

/** A lease that was released does not come back so soon, milliseconds. */
const GIVEN_BACK = 1000

/**
 * I8: a process that acted for a subject does not act for it again right after another one did. `excused`: such as that the other
 * one ended in between, or that the request of the first was held up on its way.
 */
export function inTurn(acts: readonly Act[], excused: (other: Act, again: Act) => boolean): Fault[] {
  const faults = new Map<string, Fault>()
  for (const all of Map.groupBy(acts, ({ subject }) => subject).values()) {
    const sorted = all.toSorted((a, b) => a.from - b.from)
    for (const [index, again] of sorted.entries()) {
      const other = sorted[index - 1]
      const { owner, subject, from } = again
      if (other === undefined || other.owner === owner || from - other.from > GIVEN_BACK) continue
      const before = sorted.slice(0, index).findLast((act) => act.owner === owner)
      if (before === undefined || from - before.from > 2 * GIVEN_BACK || excused(other, again)) continue
      const message = `${owner} acted for ${subject} at ${shown(before.from)} and ${shown(from)}, ${other.owner} at ${shown(other.from)}`
      faults.set(subject, { invariant: 'I8', message })
    }
  }
  return [...faults.values()]
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
