import { isObject } from '../../../std/json.ts'
import { lastItemOf } from '../../../core/checkpoint.ts'
import type { Fact } from '../../../core/fact.ts'
import {
  isOthers,
  type HeldFrames,
  type Owner,
  type OwnerNote,
  type OwnerRecord,
} from '../../../core/scope.ts'
import type { Batch, Committed, Reading } from '../../../core/store.ts'
import { type Checkpoints, seqOf, type Facts } from './log.ts'
import type { Sqlite } from './open.ts'
import type { Clock } from '../../../std/ports.ts'
import type { Hints } from './hints.ts'
import { type Sessions, TURN_ENDED } from './sessions.ts'

export interface OwnerRow {
  owner: Owner
  adopted_at: number | null
  from_seq: string | null
}

interface Sifted {
  /** The part of a batch that is ours, or may be. */
  ours: Required<Pick<Batch, 'facts' | 'hints' | 'readings' | 'newCalls'>>
  /** Frames to hold. Each of their sessions needs a hint, since only a read releases them. */
  held: (Fact & { sessionId: string })[]
  /** Sessions with a reading that is left out. */
  stale: string[]
}

/**
 * Frames of an unknown session are held, those of a foreign one are dropped, and so is everything else about it. `cursor`:
 * the stream's.
 */
export function sift(
  { facts = [], hints = [], readings = [], newCalls = [] }: Batch,
  rowOf: (sessionId: string) => OwnerRow | undefined,
  cursor: string | null,
): Sifted {
  const isLeftOut = (sessionId: string): boolean => {
    const row = rowOf(sessionId)
    return row !== undefined && isOthers(row)
  }
  const held: Sifted['held'] = []
  const isOurs = (fact: Fact): boolean => {
    const { sessionId, seq } = fact
    // A fact without a seq comes from a read, and only a session of ours makes such facts.
    if (sessionId === null || seq === null) return true
    const row = rowOf(sessionId)
    if (isLeftOut(sessionId) || isBefore(seq, row?.from_seq ?? null, cursor)) return false
    if (row?.owner === 'ours') return true
    held.push({ ...fact, sessionId })
    return false
  }
  const isStale = ({ session, sessionId }: Reading): boolean => session !== null && isLeftOut(sessionId)
  return {
    ours: {
      facts: facts.filter(isOurs),
      hints: hints.filter(({ sessionId }) => sessionId === null || !isLeftOut(sessionId)),
      readings: readings.filter((reading) => !isStale(reading)),
      newCalls: newCalls.filter(({ sessionId }) => !isLeftOut(sessionId)),
    },
    held,
    stale: readings.filter(isStale).map(({ sessionId }) => sessionId),
  }
}

/**
 * Whether a frame is from before the session became ours. If the cursor is below that boundary, the service restarted
 * its seqs, and no frame counts as earlier.
 */
function isBefore(seq: string, from: string | null, cursor: string | null): boolean {
  const boundary = seqOf(from)
  const number = seqOf(seq)
  if (boundary === null || number === null || number > boundary) return false
  return (seqOf(cursor) ?? -1n) >= boundary
}

/**
 * The owners of sessions, and held frames of sessions whose owner is not known yet. Every method runs inside a transaction
 * of the caller.
 */
export class SessionOwners {
  readonly #checkpoints
  readonly #get
  readonly #put
  readonly #forget
  readonly #hold
  readonly #heldOf
  readonly #dropHeld
  readonly #held
  readonly #strangers
  readonly #countForeign

  constructor(db: Sqlite, checkpoints: Checkpoints) {
    this.#checkpoints = checkpoints
    this.#get = db.prepare<[string], OwnerRow>(
      'SELECT owner, adopted_at, from_seq FROM session_owners WHERE session_id = ?',
    )
    this.#put = db.prepare<[string, Owner, number, number | null, string | null]>(
      `INSERT INTO session_owners (session_id, owner, noted_at, adopted_at, from_seq) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (session_id) DO UPDATE SET owner = excluded.owner, noted_at = excluded.noted_at,
         adopted_at = excluded.adopted_at, from_seq = excluded.from_seq`,
    )
    this.#forget = db.prepare<[string]>('DELETE FROM session_owners WHERE session_id = ?')
    this.#hold = db.prepare<[string, string, number, string]>(
      'INSERT INTO held_frames (session_id, id, characters, fact) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO NOTHING',
    )
    this.#heldOf = db
      .prepare<[string], string>('SELECT fact FROM held_frames WHERE session_id = ? ORDER BY pos')
      .pluck()
    this.#dropHeld = db.prepare<[string]>('DELETE FROM held_frames WHERE session_id = ?')
    this.#held = db.prepare<[], HeldFrames>(
      'SELECT count(*) AS frames, ifnull(sum(characters), 0) AS characters FROM held_frames',
    )
    this.#strangers = db
      .prepare<[number, string, number], string>(
        `SELECT session_id FROM session_owners WHERE noted_at < ? AND session_id > ?
           AND NOT (owner = 'ours' AND EXISTS (SELECT 1 FROM sessions WHERE id = session_id))
         ORDER BY session_id LIMIT +?`,
      )
      .pluck()
    this.#countForeign = db
      .prepare<[], number>("SELECT count(*) FROM session_owners WHERE owner = 'foreign'")
      .pluck()
  }

  of(ids: readonly string[]): Map<string, OwnerRecord> {
    const found = new Map<string, OwnerRecord>()
    for (const id of ids) {
      const row = this.#get.get(id)
      if (row !== undefined) found.set(id, { owner: row.owner, adoptedAt: row.adopted_at })
    }
    return found
  }

  note({ sessionId, owner, adoptedAt, at }: OwnerNote): void {
    if (owner === 'unknown') {
      this.#forget.run(sessionId)
      return
    }
    const before = this.#get.get(sessionId)
    const cursor = owner === 'pending' ? this.#checkpoints.get('stream') : (before?.from_seq ?? null)
    this.#put.run(sessionId, owner, at, adoptedAt ?? before?.adopted_at ?? null, cursor)
  }

  /** Removes and returns the held frames of a session, in their order. */
  release(sessionId: string): Fact[] {
    const facts = this.#heldOf.all(sessionId).map(factIn)
    if (facts.length > 0) this.#dropHeld.run(sessionId)
    return facts
  }

  /** @returns how many there were. */
  drop(sessionId: string): number {
    return this.#dropHeld.run(sessionId).changes
  }

  held(): HeldFrames {
    return this.#held.get() ?? { frames: 0, characters: 0 }
  }

  strangers(before: number, after: string, limit: number): string[] {
    return this.#strangers.all(before, after, limit)
  }

  countForeign(): number {
    return this.#countForeign.get() ?? 0
  }

  /** Sifts a batch, and holds what is to be held. */
  sift(batch: Batch): Sifted {
    const rows = new Map<string, OwnerRow | undefined>()
    const rowOf = (id: string): OwnerRow | undefined => {
      if (!rows.has(id)) rows.set(id, this.#get.get(id))
      return rows.get(id)
    }
    const sifted = sift(batch, rowOf, this.#checkpoints.get('stream'))
    for (const fact of sifted.held)
      this.#hold.run(fact.sessionId, fact.id, fact.body.length, JSON.stringify(fact))
    return sifted
  }
}

/** The fact of a held frame; only this program writes such rows. */
export function factIn(text: string): Fact {
  const fact: unknown = JSON.parse(text)
  if (!isObject(fact)) throw new Error('a held frame cannot be read')
  return fact as unknown as Fact
}

interface ScopingParts {
  owners: SessionOwners
  facts: Facts
  hints: Hints
  sessions: Sessions
  checkpoints: Checkpoints
  clock: Clock
}

/** Inside the transaction of a batch with a scope: stores the owners of its sessions, and returns the part that is ours. */
export function createScoping(parts: ScopingParts): (batch: Batch, into: Committed) => Batch {
  const { owners, facts, hints, sessions, checkpoints, clock } = parts

  const release = (sessionId: string, into: Committed): number => {
    const released = owners.release(sessionId)
    facts.release(released, into)
    for (const fact of released) if (fact.type === TURN_ENDED) sessions.endTurn(fact)
    return released.length
  }

  /** The session is no longer ours: its hint and its held frames are dropped. Pending deliveries are still made. */
  const leave = (sessionId: string, at: number): number => {
    hints.drop(sessionId)
    sessions.leave(sessionId, at)
    // If the session becomes ours again, items of the time in between make no facts.
    checkpoints.drop(lastItemOf(sessionId))
    return owners.drop(sessionId)
  }

  const note = (one: OwnerNote, into: Committed): number => {
    const { sessionId, owner, at } = one
    owners.note(one)
    if (owner === 'ours') return release(sessionId, into)
    if (owner !== 'foreign' && owner !== 'gone') return 0
    const dropped = leave(sessionId, at)
    if (owner === 'gone') into.unattributed = (into.unattributed ?? 0) + dropped
    return dropped
  }

  return (batch, into) => {
    let moved = 0
    for (const one of batch.owners ?? []) moved += note(one, into)
    const { ours, held, stale } = owners.sift({ ...batch, facts: facts.unpruned(batch.facts ?? []) })
    into.stale.push(...stale)
    // The first frame of a session makes a hint, and that read may be over already. Only a new read releases the held
    // frames.
    for (const sessionId of new Set(held.map((fact) => fact.sessionId)))
      hints.ensure(sessionId, clock.now(), clock.steady())
    if (held.length > 0) into.hinted = true
    if (held.length + moved > 0) into.held = owners.held()
    return { ...batch, ...ours }
  }
}
