import { FIRST_LOOK } from '../../../core/checkpoint.ts'
import { CHANNELS } from '../../../core/fact.ts'
import type { Expected, Miss } from '../../../core/store.ts'
import { MISSED_PLACE, missedOf, oldOf, type SeenRow } from '../missed.ts'
import type { Checkpoints } from './log.ts'
import type { Sqlite } from './open.ts'

/** Facts that one step reads; no other work of the store runs meanwhile. */
const STEP = 2000

/**
 * Walks the log once, step by step, and finds state facts that a channel did not announce.
 * @returns the next step, to be called inside a transaction.
 */
export function createMissed(
  db: Sqlite,
  checkpoints: Checkpoints,
): (expected: Expected, before: number, now: number) => { missed: Miss[]; more: boolean } {
  // SQLite reads through the body to reach the columns after it. So these are read for state facts only, whose bodies
  // are short.
  const next = db.prepare<[number], SeenRow>(
    `SELECT pos, at, type, ${CHANNELS.map((channel) => `CASE family WHEN 'state' THEN seen_${channel} END AS seen_${channel}`).join(', ')}
     FROM facts WHERE pos > ? ORDER BY pos LIMIT ${STEP}`,
  )

  return (expected, before, now) => {
    const looked = next.all(Number(checkpoints.get(MISSED_PLACE) ?? 0))
    const old = oldOf(looked, before, now)
    const missed = missedOf(old, expected, Number(checkpoints.get(FIRST_LOOK) ?? 0))
    const last = old.at(-1)
    if (last !== undefined) checkpoints.set(MISSED_PLACE, String(last.pos))
    return { missed, more: old.length === STEP }
  }
}
