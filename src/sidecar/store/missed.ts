import { CHANNELS, STATE_TYPES } from '../../core/fact.ts'
import type { Expected, Miss } from '../../core/store.ts'

/** The checkpoint with the position up to which the log was searched for misses. */
export const MISSED_PLACE = 'missed_pos'
const STATE = new Set<string>(STATE_TYPES)

/** A fact, and when each channel reported it. */
export interface SeenRow {
  pos: number
  at: number
  type: string
  seen_stream: number | null
  seen_webhook: number | null
  seen_poll: number | null
}

/**
 * The rows before the first one that is too young. A fact with a time in the future was stored while our clock was ahead:
 * the facts after it may still be old.
 */
export function oldOf<R extends { at: number }>(
  rows: readonly R[],
  before: number,
  now: number,
): readonly R[] {
  const young = rows.findIndex(({ at }) => at >= before && at <= now)
  return young === -1 ? rows : rows.slice(0, young)
}

/**
 * State facts that a channel did not announce. Facts up to the time `from` are left out: no channel could announce
 * them.
 */
export function missedOf(rows: readonly SeenRow[], expected: Expected, from: number): Miss[] {
  return rows
    .filter(({ type, at }) => STATE.has(type) && at > from)
    .flatMap((row) =>
      CHANNELS.filter(
        (channel) => expected[channel]?.has(row.type) === true && row[`seen_${channel}`] === null,
      ).map((channel): Miss => ({ channel, type: row.type })),
    )
}
