import type { Clock } from '../../../std/ports.ts'
import type { Checkpoints } from './checkpoints.ts'
import type { Sqlite } from './open.ts'
import type { Ownership } from './owner.ts'

/** The steady time is written down so often, milliseconds. */
const NOTED = 1000
/** The checkpoint with the steady time of the last commit, to the second. */
export const STEADY = 'steady'

/**
 * What waits in the store is due by the steady clock, which starts at the wall clock. When somebody set that back between
 * two processes, all of it would wait for as long: it is moved back with the clock.
 * @returns what notes the time, inside a transaction.
 */
export function keepTime(
  db: Sqlite,
  checkpoints: Checkpoints,
  clock: Clock,
  ownership: Ownership,
): () => void {
  const last = Number(checkpoints.get(STEADY) ?? 0)
  const back = Math.floor(last - clock.steady())
  if (back > 0) {
    db.transaction(() => {
      ownership.confirm()
      for (const table of ['hints', 'lanes', 'calls']) {
        db.prepare(`UPDATE ${table} SET due_at = max(0, due_at - ?)`).run(back)
      }
      // How long a turn's artifacts have been awaited says when to look again.
      db.prepare('UPDATE turns SET final_read_at = max(0, final_read_at - ?) WHERE settled = 0').run(back)
      checkpoints.set(STEADY, String(last - back))
    }).immediate()
  }
  let noted = 0
  return () => {
    const now = clock.steady()
    if (now - noted < NOTED) return
    noted = now
    checkpoints.set(STEADY, String(Math.floor(now)))
  }
}
