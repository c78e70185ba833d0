import { FIRST_LOOK } from '../../../core/checkpoint.ts'
import { CHANNELS, STATE_TYPES } from '../../../core/fact.ts'
import type { Expected, Miss } from '../../../core/store.ts'
import type { Checkpoints } from './log.ts'
import type { Sqlite } from './open.ts'

/** Facts that one step reads: the store does nothing else meanwhile. */
const STEP = 2000
const PLACE = 'missed_pos'

interface Row {
  pos: number
  at: number
  type: string
  seen_stream: number | null
  seen_webhook: number | null
  seen_poll: number | null
}

/**
 * Walks the log once, step by step, and finds state facts that a channel did not announce.
 * @returns the next step, to be called inside a transaction.
 */
export function createMissed(
  db: Sqlite,
  checkpoints: Checkpoints,
): (expected: Expected, before: number, now: number) => { missed: Miss[]; more: boolean } {
  // Columns after the body are read for state facts only, whose bodies are short.
  const next = db.prepare<[number], Row>(
    `SELECT pos, at, type, ${CHANNELS.map((channel) => `CASE family WHEN 'state' THEN seen_${channel} END AS seen_${channel}`).join(', ')}
     FROM facts WHERE pos > ? ORDER BY pos LIMIT ${STEP}`,
  )
  const state = new Set<string>(STATE_TYPES)

  return (expected, before, now) => {
    const looked = next.all(Number(checkpoints.get(PLACE) ?? 0))
    // A fact with a time in the future was stored while our clock was ahead: the facts after it may still be old.
    const young = looked.findIndex(({ at }) => at >= before && at <= now)
    const old = young === -1 ? looked : looked.slice(0, young)
    // Facts of the first look happened before any channel could announce them.
    const from = Number(checkpoints.get(FIRST_LOOK) ?? 0)
    const missed = old
      .filter(({ type, at }) => state.has(type) && at > from)
      .flatMap((row) =>
        CHANNELS.filter(
          (channel) => expected[channel]?.has(row.type) === true && row[`seen_${channel}`] === null,
        ).map((channel): Miss => ({ channel, type: row.type })),
      )
    const last = old.at(-1)
    if (last !== undefined) checkpoints.set(PLACE, String(last.pos))
    return { missed, more: old.length === STEP }
  }
}
