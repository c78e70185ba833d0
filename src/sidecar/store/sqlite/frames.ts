import { streamFactIds, type StoredFact } from '../../../core/fact.ts'
import { isBefore } from '../../../core/seq.ts'
import type { StoreReader } from '../../../core/store-reader.ts'
import type { Sqlite } from './open.ts'
import { POSITIONS_OF_SESSION } from './listing.ts'
import { FACT_COLUMNS, factOf, type FactRow } from './log.ts'

/** Positions of the log that one query reads: other work runs in between. */
const STRETCH = 2048
/** About how many characters of frames one query returns: this limits the memory for a slow reader. */
const CHARACTERS = 256 * 1024

/** The log read as the stream that it came from. Seqs ascend with positions, except where frames were held for a time. */
export function createFrames(db: Sqlite): Pick<StoreReader, 'placeOf' | 'frames'> {
  const ends = db.prepare<[], { first: number | null; last: number | null }>(
    'SELECT (SELECT min(pos) FROM facts) AS first, (SELECT max(pos) FROM facts) AS last',
  )
  const byId = db
    .prepare<[string, string, string], number>('SELECT pos FROM facts WHERE id >= ? AND id < ? AND seq = ?')
    .pluck()
  const nextFrame = db.prepare<[number], { pos: number; seq: string }>(
    'SELECT pos, seq FROM facts WHERE pos >= ? AND seq IS NOT NULL ORDER BY pos LIMIT 1',
  )
  const nextPlace = db.prepare<[number], number>('SELECT min(pos) FROM facts WHERE pos > ?').pluck()
  const between = db.prepare<[number, number], FactRow>(
    `SELECT ${FACT_COLUMNS} FROM facts f WHERE f.pos > ? AND f.pos <= ? AND f.seq IS NOT NULL ORDER BY f.pos`,
  )
  // Reads by the positions of a session's facts: the cost of a replay does not grow with the rest of the log.
  const ofSession = db.prepare<(string | number)[], FactRow>(
    `SELECT ${FACT_COLUMNS} FROM facts f WHERE f.pos IN (${POSITIONS_OF_SESSION}
       ORDER BY 1 LIMIT ${STRETCH}) ORDER BY f.pos`,
  )

  return {
    async placeOf(seq) {
      const { from, to } = streamFactIds(seq)
      const pos = byId.get(from, to, seq)
      if (pos !== undefined) return { pos, stored: true }
      const { first, last } = ends.get() ?? { first: null, last: null }
      if (first === null || last === null) return { pos: 0, stored: false }
      let [low, high] = [first - 1, last]
      while (low < high) {
        const middle = Math.ceil((low + high) / 2)
        const frame = nextFrame.get(middle)
        if (frame === undefined || isBefore(seq, frame.seq)) high = middle - 1
        else low = frame.pos
      }
      return { pos: low, stored: false }
    },
    async frames({ after, sessionId }) {
      const last = ends.get()?.last ?? 0
      if (sessionId !== undefined) {
        const wanted = [sessionId, after + 1, last]
        const { frames, rows, reached, full } = read(ofSession.iterate(...wanted, ...wanted))
        const more = full || rows === STRETCH
        return { frames, next: more ? reached : Math.max(after, last), more }
      }
      const begin = nextPlace.get(after) ?? null
      if (begin === null) return { frames: [], next: Math.max(after, last), more: false }
      const end = begin + STRETCH - 1
      const { frames, reached, full } = read(between.iterate(after, end))
      const next = full ? reached : Math.min(end, last)
      return { frames, next, more: next < last }
    },
  }
}

/** Takes rows until there are enough characters (`full`); `reached`: the position of the last one. */
function read(found: Iterable<FactRow>): {
  frames: StoredFact[]
  rows: number
  reached: number
  full: boolean
} {
  const frames: StoredFact[] = []
  let [rows, reached, characters] = [0, 0, 0]
  for (const row of found) {
    rows++
    reached = row.pos
    const fact = row.seq === null ? null : factOf(row)
    if (fact === null) continue
    frames.push(fact)
    characters += fact.body.length
    if (characters >= CHARACTERS) return { frames, rows, reached, full: true }
  }
  return { frames, rows, reached, full: false }
}
