import { crc32 } from 'node:zlib'
import { PRUNED_SEQ } from '../../../core/checkpoint.ts'
import { CHANNELS, type Channel, type Fact, type Seen, type StoredFact } from '../../../core/fact.ts'
import { isWhole } from '../../../core/seq.ts'
import type { CheckpointMove, Committed } from '../../../core/store.ts'
import type { Sqlite } from './open.ts'

/**
 * `session_facts` lacks the newest positions, after each commit fewer than this: queries about a session read those
 * facts one by one. A release of 10,000 held frames adds its entries in its own transaction, because perhaps no later
 * fact comes.
 */
const UNINDEXED = 1024
/** The checkpoint up to which `session_facts` is complete. */
const INDEXED = 'session_facts'

/** Frames in one statement: each statement also reads and writes the number of the last position. */
const TOGETHER = 16

/** Makes the deliveries of facts that are new. */
interface Fan {
  fanOut(facts: readonly StoredFact[], into: Committed): void
  /** `wanted`: the bits of `facts.wanted` for a fact of this type, one for each handler that selects it. */
  readonly configured: { wanted(type: string): number }
}

interface SightedRow {
  pos: number
  type: string
  at: number
  seen: number | null
}

/**
 * The log of facts: removes duplicates by id, and records which channel reported a fact first. Everything here runs inside a
 * transaction of the caller.
 */
export class Facts {
  readonly #fan: Fan
  readonly #insert
  readonly #insertFrames
  readonly #newest
  readonly #added
  readonly #sightings
  readonly #forgetSightings
  readonly #addSighting
  readonly #latest
  readonly #mark
  readonly #checkpoints: Checkpoints
  readonly #index

  constructor(db: Sqlite, checkpoints: Checkpoints, fan: Fan) {
    this.#checkpoints = checkpoints
    this.#fan = fan
    const insert = (row: string, times: number) =>
      db.prepare(
        `INSERT INTO facts (id, type, session_id, turn_id, at, seq, body, seen_stream, checksum, wanted, family,
           subject, seen_webhook, seen_poll)
         VALUES ${Array<string>(times).fill(row).join(', ')} ON CONFLICT (id) DO NOTHING`,
      )
    this.#insert = insert('(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)', 1)
    this.#insertFrames = insert(`(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'transcript', NULL, NULL, NULL)`, TOGETHER)
    this.#newest = db.prepare<[], number>('SELECT ifnull(max(pos), 0) FROM facts').pluck()
    this.#added = db.prepare<[number], Pick<FactRow, 'pos' | 'id'>>('SELECT pos, id FROM facts WHERE pos > ?')
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
    this.#index = db.prepare<[number, number]>(
      `INSERT OR IGNORE INTO session_facts SELECT session_id, pos FROM facts
       WHERE pos > ? AND pos <= ? AND session_id IS NOT NULL ORDER BY session_id, pos`,
    )
  }

  /** Adds the facts up to the newest one to `session_facts`, once there are enough of them. */
  #indexSessions(newest: number): void {
    // Read from the database each time: a rollback takes it back.
    const from = Number(this.#checkpoints.get(INDEXED) ?? 0)
    if (newest - from < UNINDEXED) return
    this.#index.run(from, newest)
    this.#checkpoints.set(INDEXED, String(newest))
  }

  /** Adds those of `facts` that are new, in order, and their deliveries. */
  append(facts: readonly Fact[], into: Committed): void {
    this.release(this.unpruned(facts), into)
  }

  /** Leaves out frames that were delivered and removed long ago: a service that replays everything sends them again. */
  unpruned(facts: readonly Fact[]): readonly Fact[] {
    if (facts.every(({ seq }) => seq === null)) return facts
    const pruned = seqOf(this.#checkpoints.get(PRUNED_SEQ))
    if (pruned === null) return facts
    return facts.filter(({ seq }) => seq === null || (seqOf(seq) ?? pruned + 1n) > pruned)
  }

  /**
   * As `append`, for frames that were held. Later frames may have been delivered and removed meanwhile, so a low seq is
   * no reason to leave one out.
   */
  release(facts: readonly Fact[], into: Committed): void {
    const added: StoredFact[] = []
    for (let from = 0; from < facts.length; from += TOGETHER) {
      const group = facts.slice(from, from + TOGETHER)
      if (group.length === TOGETHER && group.every(isFrame)) this.#addFrames(group, added)
      else for (const fact of group) this.#add(fact, added)
    }
    if (added.length === 0) return
    for (const fact of added) into.facts.push(fact)
    this.#fan.fanOut(added, into)
    const newest = added.at(-1)?.pos ?? 0
    this.#indexSessions(newest)
  }

  #add(fact: Fact, added: StoredFact[]): void {
    const seen = fact.subject === null ? fact.seen : this.#seenBefore(fact.subject, fact.seen)
    const rest = [fact.family, fact.subject, seen.webhook ?? null, seen.poll ?? null]
    const result = this.#insert.run(...this.#frameColumns(fact, seen), ...rest)
    if (result.changes === 0) return
    if (fact.subject !== null) this.#forgetSightings.run(fact.subject)
    added.push(storedFact(fact, Number(result.lastInsertRowid), seen))
  }

  #addFrames(frames: readonly Fact[], added: StoredFact[]): void {
    const before = this.#newest.get() ?? 0
    const { changes, lastInsertRowid } = this.#insertFrames.run(
      frames.flatMap((frame) => this.#frameColumns(frame, frame.seen)),
    )
    if (changes === frames.length) {
      let pos = Number(lastInsertRowid) - changes
      for (const frame of frames) added.push(storedFact(frame, ++pos, frame.seen))
    } else if (changes > 0) {
      const positions = new Map(this.#added.all(before).map(({ id, pos }) => [id, pos]))
      for (const frame of frames) {
        const pos = positions.get(frame.id)
        if (pos === undefined) continue
        positions.delete(frame.id)
        added.push(storedFact(frame, pos, frame.seen))
      }
    }
  }

  #frameColumns(fact: Fact, seen: Seen): (string | number | null)[] {
    const { id, type, sessionId, turnId, at, seq, body } = fact
    const rest = [seen.stream ?? null, checksum(fact), this.#fan.configured.wanted(type)]
    return [id, type, sessionId, turnId, at, seq, body, ...rest]
  }

  /** The sightings of `subject` before its fact came. */
  #seenBefore(subject: string, given: Seen): Seen {
    const seen = { ...given }
    for (const { channel, at } of this.#sightings.all(subject))
      seen[channel] = Math.min(at, seen[channel] ?? at)
    return seen
  }

  /** A channel reports that `subject` happened: stored with the fact, or for the fact to come. */
  sight(subject: string, channel: Channel, at: number, into: Committed): void {
    const fact = this.#latest[channel].get(subject)
    if (fact !== undefined && fact.seen === null) {
      this.#mark[channel].run(at, fact.pos)
      into.sightings.push({ channel, type: fact.type, at, factAt: fact.at })
      return
    }
    // A session returns to the same status again and again; everything else happens once.
    if (fact === undefined || /^session\.(?!created|deleted)/.test(subject))
      this.#addSighting.run(subject, channel, at)
  }
}

/** Whether the values that `#insertFrames` does not bind are those of the fact. */
function isFrame({ family, subject, seen }: Fact): boolean {
  return family === 'transcript' && subject === null && seen.webhook === undefined && seen.poll === undefined
}

function storedFact(fact: Fact, pos: number, seen: Seen): StoredFact {
  const { id, type, sessionId, turnId, at, family, seq, body, subject } = fact
  return { pos, id, type, sessionId, turnId, at, family, seq, body, seen, subject }
}

function perChannel<T>(make: (channel: Channel) => T): Record<Channel, T> {
  return Object.fromEntries(CHANNELS.map((channel) => [channel, make(channel)])) as Record<Channel, T>
}

/** The number in a seq, null when it is no whole number. */
export function seqOf(text: string | null): bigint | null {
  return text !== null && isWhole(text) ? BigInt(text) : null
}

/** Named positions up to which work is done: the cursor of the stream, the sweep, the pruning. */
export class Checkpoints {
  readonly #get
  readonly #set
  readonly #begin
  readonly #move
  readonly #drop

  constructor(db: Sqlite) {
    this.#get = db.prepare<[string], string | null>('SELECT value FROM checkpoints WHERE name = ?').pluck()
    this.#drop = db.prepare<[string]>('DELETE FROM checkpoints WHERE name = ?')
    this.#set = db.prepare<[string, string | null]>(
      'INSERT INTO checkpoints (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    )
    this.#begin = db.prepare<[string, string]>(
      `INSERT INTO checkpoints (name, value) VALUES (?, ?)
       ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE checkpoints.value IS NULL`,
    )
    this.#move = db.prepare<[string, string, string]>(
      'UPDATE checkpoints SET value = ? WHERE name = ? AND value = ?',
    )
  }

  get(name: string): string | null {
    return this.#get.get(name) ?? null
  }

  drop(name: string): void {
    this.#drop.run(name)
  }

  set(name: string, value: string | null): void {
    this.#set.run(name, value)
  }

  /** @returns false when its value is not `from`. */
  move({ name, to, from }: CheckpointMove): boolean {
    if (from === undefined) {
      this.set(name, to)
      return true
    }
    const moved = from === null ? this.#begin.run(name, to) : this.#move.run(to, name, from)
    return moved.changes === 1
  }
}

/** A fact has a checksum, because facts are what the sidecar promises to keep. */
export interface FactRow {
  pos: number
  id: string
  type: string
  session_id: string | null
  turn_id: string | null
  at: number
  family: Fact['family']
  seq: string | null
  body: string
  subject: string | null
  seen_stream: number | null
  seen_webhook: number | null
  seen_poll: number | null
  checksum: number
}

export const FACT_COLUMNS =
  'f.pos, f.id, f.type, f.session_id, f.turn_id, f.at, f.family, f.seq, f.body, f.subject, ' +
  'f.seen_stream, f.seen_webhook, f.seen_poll, f.checksum'

export function checksum(fact: Pick<Fact, 'id' | 'type' | 'sessionId' | 'body'>): number {
  // In two steps: joining the texts would copy the body.
  return crc32(fact.body, crc32(`${fact.id}\n${fact.type}\n${fact.sessionId ?? ''}`))
}

/** null when the row differs from what was written. */
export function factOf(row: FactRow): StoredFact | null {
  const fact: StoredFact = {
    pos: row.pos,
    id: row.id,
    type: row.type,
    sessionId: row.session_id,
    turnId: row.turn_id,
    at: row.at,
    family: row.family,
    seq: row.seq,
    body: row.body,
    subject: row.subject,
    seen: seenOf(row),
  }
  return checksum(fact) === row.checksum ? fact : null
}

export interface SeenColumns {
  seen_stream: number | null
  seen_webhook: number | null
  seen_poll: number | null
}

export function seenOf(row: SeenColumns): Seen {
  const seen: Seen = {}
  if (row.seen_stream !== null) seen.stream = row.seen_stream
  if (row.seen_webhook !== null) seen.webhook = row.seen_webhook
  if (row.seen_poll !== null) seen.poll = row.seen_poll
  return seen
}
