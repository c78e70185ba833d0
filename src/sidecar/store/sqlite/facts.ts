import type { StoredFact } from '../../../core/fact.ts'
import type { Clock } from '../../../std/ports.ts'
import type { StoreReader } from '../../../core/store-reader.ts'
import { createListing, NOTHING, scan, where, POSITIONS_OF_SESSION } from './listing.ts'
import type { Sqlite } from './open.ts'
import { FACT_COLUMNS, factOf, type FactRow } from './log.ts'

/**
 * The log for people. If the fact that a page should continue after is not known, the page is empty, as with the
 * service itself.
 */
export function createFacts(db: Sqlite, clock: Clock): Pick<StoreReader, 'facts'> {
  const posOf = db.prepare<[string], number>('SELECT pos FROM facts WHERE id = ?').pluck()
  const ends = db.prepare<[], { low: number | null; high: number | null }>(
    'SELECT (SELECT min(pos) FROM facts) AS low, (SELECT max(pos) FROM facts) AS high',
  )

  return {
    async facts({ after, limit, order, type, sessionId }) {
      const start = after === undefined ? undefined : posOf.get(after)
      if (after !== undefined && start === undefined) return NOTHING
      const { low, high } = ends.get() ?? { low: null, high: null }
      if (low === null || high === null) return NOTHING
      const part = {
        order,
        low: order === 'asc' && start !== undefined ? start + 1 : low,
        high: order === 'desc' && start !== undefined ? start - 1 : high,
      }
      const listing = createListing<StoredFact>(limit, ({ body }) => body.length)
      return await scan(part, listing, clock, function* look(first, last) {
        const [text, values] = where([
          ['f.pos BETWEEN ? AND ?', first, last],
          ['f.type = ?', type],
          [`f.pos IN (${POSITIONS_OF_SESSION})`, sessionId, first, last, sessionId, first, last],
        ])
        const rows = db.prepare<unknown[], FactRow>(
          `SELECT ${FACT_COLUMNS} FROM facts f ${text} ORDER BY f.pos ${order}`,
        )
        for (const row of rows.iterate(...values)) {
          const fact = factOf(row)
          // A damaged fact is left out.
          if (fact !== null) yield fact
        }
      })
    },
  }
}
