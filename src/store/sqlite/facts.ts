import type { StoredFact } from '../../core/fact.ts'
import type { Clock } from '../../core/ports.ts'
import type { StoreReader } from '../../core/store.ts'
import type { Sqlite } from './open.ts'
import { FACT_COLUMNS, factOf, type FactRow } from './rows.ts'

/** Places of the log that one question looks through: no index knows types, and others get their turn in between. */
const STRETCH = 16_384

/** The log for people. A cursor that cannot be placed gives an empty page, as with the service itself. */
export function createFacts(db: Sqlite, clock: Clock): Pick<StoreReader, 'facts' | 'fact'> {
  const posOf = db.prepare<[string], number>('SELECT pos FROM facts WHERE id = ?').pluck()
  const byId = db.prepare<[string], FactRow>(`SELECT ${FACT_COLUMNS} FROM facts f WHERE id = ?`)
  const ends = db.prepare<[], { first: number | null; last: number | null }>(
    'SELECT (SELECT min(pos) FROM facts) AS first, (SELECT max(pos) FROM facts) AS last',
  )

  return {
    async facts({ after, limit, order, type, sessionId }) {
      const start = after === undefined ? undefined : posOf.get(after)
      const { first, last } = ends.get() ?? { first: null, last: null }
      if (first === null || last === null || (after !== undefined && start === undefined)) return []
      const ascending = order === 'asc'
      const conditions = [
        ['f.type = ?', type],
        ['f.session_id = ?', sessionId],
      ].filter(([, value]) => value !== undefined)
      const bounds = ascending ? 'f.pos > ? AND f.pos <= ?' : 'f.pos < ? AND f.pos >= ?'
      const stretch = db.prepare<unknown[], FactRow>(
        `SELECT ${FACT_COLUMNS} FROM facts f WHERE ${[bounds, ...conditions.map(([text]) => text)].join(' AND ')}
         ORDER BY f.pos ${order} LIMIT ?`,
      )
      const facts: StoredFact[] = []
      let pos = start ?? (ascending ? first - 1 : last + 1)
      const more = (): boolean => facts.length < limit && (ascending ? pos < last : pos > first)
      while (more()) {
        const left = limit - facts.length
        const end = ascending ? pos + STRETCH : pos - STRETCH
        const rows = stretch.all(pos, end, ...conditions.map(([, value]) => value), left)
        // One that is damaged is left out, and a page that is short for that is not the last.
        facts.push(...rows.flatMap((row) => factOf(row) ?? []))
        pos = rows.length === left ? (rows.at(-1)?.pos ?? end) : end
        if (more()) await new Promise<void>((resolve) => clock.soon(resolve))
      }
      return facts
    },
    async fact(id) {
      const row = byId.get(id)
      return row === undefined ? null : factOf(row)
    },
  }
}
