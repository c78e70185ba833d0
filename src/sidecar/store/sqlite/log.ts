import { PRUNED_SEQ } from '../../../core/checkpoint.ts'
import { CHANNELS, type Channel, type Fact, type Seen, type StoredFact } from '../../../core/fact.ts'
import { isWhole } from '../../../core/seq.ts'
import type { Committed } from '../../../core/store.ts'
import type { Lanes } from './lanes.ts'
import type { Sqlite } from './open.ts'
import { checksum } from './rows.ts'

interface SightedRow {
  pos: number
  type: string
  at: number
  seen: number | null
}

/** The log of facts: dedupe by id, who saw what first. Everything here runs inside a transaction of the caller's. */
export class Facts {
  readonly #lanes: Lanes
  readonly #insert
  readonly #sightings
  readonly #forgetSightings
  readonly #addSighting
  readonly #latest
  readonly #mark
  readonly #pruned

  constructor(db: Sqlite, lanes: Lanes) {
    this.#lanes = lanes
    this.#insert = db.prepare(
      `INSERT INTO facts (id, type, session_id, turn_id, at, family, seq, body, subject,
         seen_stream, seen_webhook, seen_poll, checksum)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
    )
    this.#sightings = db.prepare<[string], { channel: Channel; at: number }>(
      'SELECT channel, at FROM sightings WHERE subject = ?',
    )
    this.#forgetSightings = db.prepare<[string]>('DELETE FROM sightings WHERE subject = ?')
    this.#addSighting = db.prepare<[string, string, number]>(
      'INSERT INTO sightings (subject, channel, at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING',
    )
    this.#latest = perChannel((channel) =>
      db.prepare<[string], SightedRow>(
        `SELECT pos, type, at, seen_${channel} AS seen FROM facts WHERE subject = +? ORDER BY pos DESC LIMIT 1`,
      ),
    )
    this.#mark = perChannel((channel) =>
      db.prepare<[number, number]>(`UPDATE facts SET seen_${channel} = ? WHERE pos = ?`),
    )
    this.#pruned = db
      .prepare<[], string>(`SELECT value FROM checkpoints WHERE name = '${PRUNED_SEQ}'`)
      .pluck()
  }

  /** Adds what is new of `facts`, in order, and the deliveries that follow from it. */
  append(facts: readonly Fact[], into: Committed): void {
    this.release(this.unpruned(facts), into)
  }

  /** A service that replays everything hands us what we delivered and removed long ago. */
  unpruned(facts: readonly Fact[]): readonly Fact[] {
    if (facts.every(({ seq }) => seq === null)) return facts
    const pruned = seqOf(this.#pruned.get() ?? null)
    if (pruned === null) return facts
    return facts.filter(({ seq }) => seq === null || (seqOf(seq) ?? pruned + 1n) > pruned)
  }

  /** As `append`, of frames that were held: later ones may have been delivered and removed meanwhile. */
  release(facts: readonly Fact[], into: Committed): void {
    const added: StoredFact[] = []
    for (const fact of facts) {
      const stored = this.#add(fact)
      if (stored !== null) added.push(stored)
    }
    if (added.length === 0) return
    for (const fact of added) into.facts.push(fact)
    this.#lanes.fanOut(added, into)
  }

  #add(fact: Fact): StoredFact | null {
    const seen = fact.subject === null ? fact.seen : this.#seenBefore(fact.subject, fact.seen)
    const result = this.#insert.run(
      fact.id,
      fact.type,
      fact.sessionId,
      fact.turnId,
      fact.at,
      fact.family,
      fact.seq,
      fact.body,
      fact.subject,
      seen.stream ?? null,
      seen.webhook ?? null,
      seen.poll ?? null,
      checksum(fact),
    )
    if (result.changes === 0) return null
    if (fact.subject !== null) this.#forgetSightings.run(fact.subject)
    const { id, type, sessionId, turnId, at, family, seq, body, subject } = fact
    const pos = Number(result.lastInsertRowid)
    return { pos, id, type, sessionId, turnId, at, family, seq, body, seen, subject }
  }

  /** What channels said of `subject` before its fact came. */
  #seenBefore(subject: string, given: Seen): Seen {
    const seen = { ...given }
    for (const { channel, at } of this.#sightings.all(subject))
      seen[channel] = Math.min(at, seen[channel] ?? at)
    return seen
  }

  /** A channel says that `subject` happened: remembered on the fact, or for the fact to come. */
  sight(subject: string, channel: Channel, at: number, into: Committed): void {
    const fact = this.#latest[channel].get(subject)
    if (fact !== undefined && fact.seen === null) {
      this.#mark[channel].run(at, fact.pos)
      into.sightings.push({ channel, type: fact.type, at, factAt: fact.at })
      return
    }
    // A session comes back to the same status again and again; the others happen once.
    if (fact === undefined || /^session\.(?!created|deleted)/.test(subject))
      this.#addSighting.run(subject, channel, at)
  }
}

function perChannel<T>(make: (channel: Channel) => T): Record<Channel, T> {
  return Object.fromEntries(CHANNELS.map((channel) => [channel, make(channel)])) as Record<Channel, T>
}

/** The number in a seq, null when it is no whole number. */
export function seqOf(text: string | null): bigint | null {
  return text !== null && isWhole(text) ? BigInt(text) : null
}
