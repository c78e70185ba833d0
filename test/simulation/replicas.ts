import type { Call, CallRoom, ClaimedCall } from '../../src/core/call.ts'
import { transition } from '../../src/core/call-machine.ts'
import type { Lane } from '../../src/core/delivery.ts'
import type { Lease } from '../../src/core/lease.ts'
import type { TransientEvent } from '../../src/core/observer.ts'
import { LEASE, SHARDS, type Shards, type Wake, type WakeTopic } from '../../src/core/shards.ts'
import type { Batch, ClaimedHint, Committed, HintedSession, LaneRoom, Store } from '../../src/core/store.ts'
import { StoreError } from '../../src/core/store-error.ts'
import type { Clock, Log } from '../../src/std/ports.ts'
import {
  LEADER,
  Membership,
  placeOf,
  type Granted,
  type LeaseTable,
  type Presence,
  type Survey,
  type WakeSpan,
  type Wanted,
} from '../../src/sidecar/store/membership.ts'
import { Ownership } from '../../src/sidecar/store/sqlite/committer.ts'
import { DeliveryRows, recoverBegun } from '../../src/sidecar/store/sqlite/lanes.ts'
import type { Sqlite } from '../../src/sidecar/store/sqlite/open.ts'
import { createSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import type { Agenda, Owner } from './agenda.ts'
import type { Chance } from './chance.ts'
import type { Fault } from './faults.ts'
import type { Sites } from './sites.ts'

/** A process, as all see it. */
interface ReplicaRow {
  number: number
  startedAt: number
  /** On the store's clock. */
  until: number
  /** True time. */
  renewedAt: number
  seen: number
  fenced: boolean
  joined: boolean
  streamConnected: boolean
  /** The number of its transactions that may concern others: all but those that change only lanes of its own shards. */
  noted: number
}

interface LeaseRow {
  /** null: it is free. */
  owner: string | null
  epoch: number
}

type PassSites = Pick<Sites, 'pass'>

export interface SharedParts {
  db: Sqlite
  agenda: Agenda
  chance: Chance
  /** Attempts that the former owners of these sessions left are taken over. */
  onTaken: (isTheirs: (sessionId: string | null) => boolean) => void
  /** What must never be. */
  onBroken: (message: string) => void
}

/** Rows without a lane of their own in the newest facts: so few that a seed comes to older ones. */
const FRESH = 6
/** What NOTIFY takes until it is coalesced and heard, milliseconds; and where it is late. */
const WAKES = [20, 21, 25, 60]
const LATE = 4000
/** What a statement takes on its way, milliseconds; and a reply that is late. */
const WAY = [0.2, 0.5, 2]
const LATE_REPLY = [800, 4000, 11_000]
/** A renewal that takes longer fails for its process, as `heartbeat` of the store on PostgreSQL, milliseconds. */
const HEARTBEAT = 3000
/** For so long the database is unreachable where a COMMIT had no answer, and so often it is asked then, milliseconds. */
const UNKNOWN = [100, 3000, 20_000]
const ASKED = 200
/** A connection that is cut is noticed so soon, milliseconds. */
const CUT = [5, 300, 1500]
/** In this share of the seeds. */
const DEAF = 0.3
/** More than any queue of a seed holds. */
const ALL = 100_000

const FAULTS: readonly Fault[] = ['crash', 'lost', 'slow']

/**
 * The store that several processes share: one database, one table of leases. Each process has a face of it, with claims in
 * its own memory, as with PostgreSQL.
 */
export class SharedStore {
  readonly #parts: SharedParts
  readonly #replicas = new Map<string, ReplicaRow>()
  readonly #leases = new Map<number, LeaseRow>()
  readonly #faces = new Set<Face>()
  /** No wake is heard, as behind a pooler: only the looks are left. */
  readonly #deaf: boolean
  /** The processes that stored the hint of each session, by its key. */
  readonly hinted = new Map<string, Set<Face>>()
  #epoch = 0
  /** Milliseconds from true time to the store's clock, which an administrator sets. */
  clockOffset = 0
  /** True time: no process reaches the database until then. */
  outageUntil = 0
  /** True time: until then a pooler has no room for the renewals of any process, while reads succeed. */
  overloadUntil = 0
  /** Takeovers, for those who count. */
  takeovers = 0
  handovers = 0

  constructor(parts: SharedParts) {
    this.#parts = parts
    this.#deaf = parts.chance.is(DEAF)
    for (const place of [LEADER, ...Array.from({ length: SHARDS }, (_, shard) => shard)])
      this.#leases.set(place, { owner: null, epoch: 0 })
  }

  get parts(): SharedParts {
    return this.#parts
  }

  add(face: Face, row: ReplicaRow): void {
    this.#faces.add(face)
    this.#replicas.set(face.id, row)
  }

  /** The process is no more; its row stays until it is fenced or has left. */
  drop(face: Face): void {
    this.#faces.delete(face)
  }

  row(id: string): ReplicaRow {
    const row = this.#replicas.get(id)
    if (row === undefined) throw new Error(`there is no replica ${id}`)
    return row
  }

  /** The store's clock. */
  get now(): number {
    return this.#parts.agenda.now + this.clockOffset
  }

  /** Whether the leases of a process are over. */
  isOver(id: string): boolean {
    const { fenced, renewedAt } = this.row(id)
    return fenced || renewedAt + LEASE < this.#parts.agenda.now
  }

  get isOverloaded(): boolean {
    return this.overloadUntil > this.#parts.agenda.now
  }

  endOutage(): void {
    const { now } = this.#parts.agenda
    this.outageUntil = Math.min(this.outageUntil, now)
    this.overloadUntil = Math.min(this.overloadUntil, now)
  }

  /** Who has the lease for a session. */
  ownerOf(sessionId: string | null): string | null {
    return this.#leases.get(placeOf(sessionId ?? ''))?.owner ?? null
  }

  isFenced(id: string): boolean {
    return this.#replicas.get(id)?.fenced ?? true
  }

  renew(id: string, { joined, streamConnected }: Presence, ttl: number): boolean {
    const row = this.row(id)
    if (row.fenced) return false
    row.renewedAt = this.#parts.agenda.now
    row.seen = this.now
    row.until = row.seen + ttl
    row.joined = joined
    row.streamConnected = streamConnected
    return true
  }

  survey(id: string): Survey {
    const { now } = this
    const rows = [...this.#replicas]
    const owner = this.#leases.get(LEADER)?.owner ?? null
    let shards = 0
    for (const [place, lease] of this.#leases) if (place !== LEADER && lease.owner === null) shards++
    const others = rows.filter(([other, { fenced }]) => other !== id && !fenced)
    return {
      others: new Map(
        others.map(([other, { seen, until, joined }]) => [
          other,
          { renewal: String(seen), isOver: until < now, joined },
        ]),
      ),
      free: { leader: owner === null, shards },
      streamConnected: this.#replicas.get(owner ?? '')?.streamConnected ?? false,
      noted: new Map(others.map(([other, { noted }]) => [other, noted])),
    }
  }

  fence(id: string, renewal: string): void {
    const row = this.#replicas.get(id)
    if (row === undefined || row.fenced || String(row.seen) !== renewal) return
    row.fenced = true
    this.takeovers++
    this.#free(id)
  }

  take(id: string, { leader, shards }: Wanted): Granted[] {
    let left = shards
    const places = new Set<number>()
    for (const [place, { owner }] of this.#leases)
      if (owner === null && (place === LEADER ? leader : left-- > 0)) places.add(place)
    // One transaction: where the disk refuses the writes, no lease has an owner.
    this.#recover((sessionId) => places.has(placeOf(sessionId ?? '')))
    return [...places].map((shard) => {
      const epoch = ++this.#epoch
      this.#leases.set(shard, { owner: id, epoch })
      return { shard, epoch }
    })
  }

  /** What the former owners had begun shows as interrupted; what others have under way stays as it is. */
  #recover(isTheirs: (sessionId: string | null) => boolean): void {
    const { db, onTaken } = this.#parts
    const begun = db
      .prepare<[], { session_id: string | null; fact_pos: number; handler: number; at: number }>(
        'SELECT f.session_id, b.* FROM begun b LEFT JOIN facts f ON f.pos = b.fact_pos',
      )
      .all()
    onTaken(isTheirs)
    if (!begun.some(({ session_id: session }) => isTheirs(session))) return
    const others = begun.filter(({ session_id: session }) => !isTheirs(session))
    db.transaction(() => {
      const remove = db.prepare<[number, number]>('DELETE FROM begun WHERE fact_pos = ? AND handler = ?')
      for (const { fact_pos: pos, handler } of others) remove.run(pos, handler)
      recoverBegun(db)
      const put = db.prepare<[number, number, number]>('INSERT INTO begun VALUES (?, ?, ?)')
      for (const { fact_pos: pos, handler, at } of others) put.run(pos, handler, at)
    })()
  }

  release(id: string, given: readonly Granted[]): void {
    for (const { shard, epoch } of given) {
      const lease = this.#leases.get(shard)
      if (lease?.owner !== id || lease.epoch !== epoch) continue
      lease.owner = null
      this.handovers++
    }
  }

  /** A clean stop: its leases are free at once. */
  leave(id: string): void {
    this.row(id).fenced = true
    this.#free(id)
  }

  #free(id: string): void {
    for (const lease of this.#leases.values()) if (lease.owner === id) lease.owner = null
  }

  /** Reports to all others what one has committed; what is lost or late is found with the next look. */
  wake(from: Face, wake: Wake, span: WakeSpan): void {
    const { agenda, chance } = this.#parts
    if (this.#deaf) return
    for (const face of this.#faces) {
      if (face === from) continue
      const fault = face.sites.pass('store.wake', 'before', ['lost', 'slow'])
      if (fault === 'lost') continue
      const ms = chance.pick(WAKES) + (fault === 'slow' ? LATE : 0)
      agenda.in(ms, () => face.hear(from.id, wake, span), face.life)
    }
  }

  /** The others hear of a transient event, as of a wake. */
  pass(from: Face, event: TransientEvent): void {
    const { agenda, chance } = this.#parts
    if (this.#deaf) return
    for (const face of this.#faces) {
      if (face === from || face.sites.pass('store.wake', 'before', ['lost']) === 'lost') continue
      agenda.in(chance.pick(WAKES), () => face.hearTransient(event), face.life)
    }
  }

  list(self: string): ReturnType<Shards['replicas']> {
    const { now } = this
    const rows = [...this.#replicas].filter(([, { fenced }]) => !fenced)
    const leader = this.#leases.get(LEADER)?.owner
    const epochs = (id: string): number[] =>
      [...this.#leases.values()].filter(({ owner }) => owner === id).map(({ epoch }) => epoch)
    return Promise.resolve(
      rows.map(([id, { number, seen, startedAt }]) => ({
        id,
        name: `replica-${number}`,
        version: '0',
        self: id === self,
        report: null,
        leads: id === leader,
        shards: epochs(id).length - Number(id === leader),
        epoch: epochs(id).toSorted((a, b) => b - a)[0] ?? null,
        configuration: null,
        seenAgo: now - seen,
        startedAt,
      })),
    )
  }
}

/** The right of one process to write, checked in each transaction. What it claims in memory is claimed under its own lease. */
class FaceOwnership extends Ownership {
  face: Face | null = null

  override confirm(): void {
    this.face?.confirm()
  }

  override check(): void {
    this.face?.confirm()
  }

  override holds(lease: Lease): boolean {
    return lease === this.lease || this.face?.membership.holds(lease) === true
  }

  override get lost(): StoreError | null {
    return this.face?.membership.lost ?? null
  }

  override lose(error: StoreError): StoreError {
    return this.face?.membership.lose(error) ?? error
  }
}

/**
 * What may keep a process from renewing its leases in time: something of its own, or an outage or overload of the database that
 * all processes have, after which none may be fenced.
 */
export type Disturbed = 'no' | 'by an outage' | 'alone'

interface Process extends Owner {
  disturbed: Disturbed
}

export interface FaceParts {
  number: number
  life: Process
  /** Of the process; the store has its own. */
  clock: Clock
  log: Log
  sites: PassSites
  onCommit: () => void
  onLost: () => void
}

/** The store as one process has it. */
export class Face {
  readonly id: string
  readonly life: Process
  readonly sites: PassSites
  readonly membership: Membership
  readonly store: Store
  readonly #shared: SharedStore
  readonly #inner: Store
  readonly #own: Lease
  /** What is claimed and not returned, by kind and id, with its shard. */
  readonly #claims = new Map<string, number>()
  /** Calls that are being stored as running, by shard: it is not handed over meanwhile. */
  readonly #beginning = new Map<number, number>()
  readonly #hints
  readonly #lanes
  readonly #calls
  readonly #laneKey
  readonly #factSession
  readonly #hintNow
  readonly #hintDue
  /** True time: the database is unreachable until then. */
  #cutUntil = 0
  #closed = false
  #isUnknown = false
  /** Writes under way that may concern other processes. */
  #concerning = 0
  /** The number of noted transactions of which all is reported, or is with the next wake. */
  #reported = 0
  /** The same, when the last wake was sent. */
  #sent = 0
  /** What an earlier write means for others is reported by no wake. */
  #hasGap = false
  /** A wake is about to be sent. */
  #isWaking = false
  #wakes = new Set<WakeTopic>()
  #subjects: Wake['hints'][number][] = []

  constructor(shared: SharedStore, parts: FaceParts) {
    const { number, life, clock, log, sites, onCommit, onLost } = parts
    const { db, agenda } = shared.parts
    this.#shared = shared
    this.id = `replica ${number}`
    this.life = life
    this.sites = sites
    shared.add(this, {
      number,
      startedAt: clock.now(),
      // As `enter` of the store does: until its first renewal, no one takes it for dead.
      until: shared.now + LEASE,
      renewedAt: agenda.now,
      seen: shared.now,
      fenced: false,
      joined: false,
      streamConnected: false,
      noted: 0,
    })
    const claimed = (shard: number): number => this.#claimedOf(shard)
    this.membership = new Membership({ id: this.id, table: this.#table(), clock, claimed, onLost })
    const ownership = new FaceOwnership(db)
    this.#own = ownership.lease
    // Hints of several processes have generations of their own.
    let making = true
    const times: Clock = {
      ...clock,
      now: () => (making ? ownership.lease.epoch * 1e9 : clock.now()),
      steady: () => agenda.now,
    }
    this.#inner = createSqliteStore(
      db,
      {
        clock: times,
        log,
        onCommit: () => {
          if (this.#concerning > 0) shared.row(this.id).noted++
          onCommit()
        },
      },
      ownership,
      new DeliveryRows(db, FRESH),
    )
    making = false
    ownership.face = this
    this.#hints = db.prepare<[], { session_id: string; due_at: number }>(
      'SELECT session_id, due_at FROM hints ORDER BY due_at',
    )
    this.#lanes = db.prepare<[string], { id: number; key: string; due_at: number }>(
      `SELECT l.id, l.key, l.due_at FROM lanes l JOIN handlers h ON h.number = l.handler
       WHERE h.name = ? AND l.pending > 0 ORDER BY l.due_at`,
    )
    this.#calls = db.prepare<
      [],
      { call_id: string; session_id: string; name: string; state: string; due_at: number }
    >('SELECT call_id, session_id, name, state, due_at FROM calls WHERE ended_at IS NULL ORDER BY due_at')
    this.#laneKey = db.prepare<[number], string>('SELECT key FROM lanes WHERE id = ?').pluck()
    this.#factSession = db
      .prepare<[string], string | null>('SELECT session_id FROM facts WHERE id = ?')
      .pluck()
    this.#hintNow = db
      .prepare<[string], number>('SELECT generation AS given FROM hints WHERE session_id = ?')
      .pluck()
    this.#hintDue = db.prepare<[number, string]>(
      'UPDATE hints SET due_at = min(due_at, ?) WHERE session_id = ?',
    )
    this.membership.subscribe({ lost: (shards) => this.#forgetClaims(shards) })
    this.store = this.#faceOf(this.#inner)
  }

  /** The first renewal: the process may read. */
  begin(): Promise<void> {
    return this.membership.begin()
  }

  /** The answer to a COMMIT is lost. Settles once the process knows that it was committed, or that it is fenced. */
  async loseReply(): Promise<void> {
    const { agenda, chance } = this.#shared.parts
    this.cut(chance.pick(UNKNOWN))
    while (this.isCut) {
      await new Promise<void>((resolve) => void agenda.in(ASKED, resolve, this.life))
      if (this.membership.lost !== null) throw this.membership.lost
    }
  }

  /** A commit of this process is stored, and it never knows: the first commit that succeeds wakes all who have work. */
  forget({ lanes }: Committed): void {
    this.#isUnknown = true
    // Nor does it report it to others.
    this.#hasGap = true
    this.#wakes = new Set()
    this.#subjects = []
    for (const { lane, claimed } of lanes) {
      const key = `lane ${lane.id}`
      if (claimed && this.#claims.delete(key)) this.#free(key)
    }
  }

  /** By the leases in the database: a leader that sleeps does not know yet that another one follows. */
  get leads(): boolean {
    return this.#shared.ownerOf(null) === this.id
  }

  /** The database is unreachable for so long. */
  cut(ms: number): void {
    this.#cutUntil = Math.max(this.#cutUntil, this.#shared.parts.agenda.now + ms)
  }

  heal(): void {
    this.#cutUntil = Math.min(this.#cutUntil, this.#shared.parts.agenda.now)
  }

  get isCut(): boolean {
    return this.cutUntil > this.#shared.parts.agenda.now
  }

  /** True time. */
  get cutUntil(): number {
    return Math.max(this.#cutUntil, this.#shared.outageUntil)
  }

  /** First in each transaction that writes. */
  confirm(): void {
    if (this.#closed) throw new StoreError('closed')
    if (this.isCut) throw new StoreError('unreachable')
    if (this.#shared.isFenced(this.id)) throw this.membership.lose(new StoreError('fenced'))
    const { refusal } = this.membership
    if (refusal !== null) throw refusal
  }

  hear(from: string, wake: Wake, span: WakeSpan): void {
    if (this.isCut || this.membership.lost !== null) return
    this.membership.heard(from, span)
    if (wake.topics.size > 0) this.membership.report((to) => to.woken?.(wake))
  }

  hearTransient(event: TransientEvent): void {
    if (this.isCut || this.membership.lost !== null) return
    this.membership.report((to) => to.transientShared?.(event))
  }

  /** A clean stop is through: a webhook that still comes is refused. */
  leave(): void {
    this.#closed = true
    this.membership.stop()
    if (!this.isCut) this.#shared.leave(this.id)
    this.#shared.drop(this)
  }

  /** The process has ended. */
  drop(): void {
    this.membership.stop()
    this.#shared.drop(this)
  }

  #release(given: readonly Granted[]): void {
    this.confirm()
    for (const { shard } of given) {
      const claims = this.#claimedOf(shard)
      if (claims > 0)
        this.#shared.parts.onBroken(
          `${this.id} hands shard ${shard} over, of which ${claims} claims are open`,
        )
    }
    this.#shared.release(this.id, given)
  }

  #table(): LeaseTable {
    const { id } = this
    const shared = this.#shared
    return {
      renew: (presence, ttl) =>
        this.#ask('renew', () => shared.renew(id, presence, ttl), { limit: HEARTBEAT }),
      survey: () => this.#ask('survey', () => shared.survey(id)),
      fence: (dead, renewal) => this.#ask('fence', () => shared.fence(dead, renewal)),
      take: (wanted) => this.#ask('take', () => (this.confirm(), shared.take(id, wanted)), { written: true }),
      release: (given) => this.#ask('release', () => this.#release(given), { written: true }),
    }
  }

  /**
   * A statement on its way to the database and back: what was sent is done, also when its sender is frozen or dead by then.
   * `written`: it is part of a transaction, of which a process asks until it knows what became of it. `limit`: the process
   * waits so long, milliseconds.
   */
  #ask<T>(
    name: string,
    run: () => T,
    { written = false, limit = Infinity }: { written?: boolean; limit?: number } = {},
  ): Promise<T> {
    const { agenda, chance } = this.#shared.parts
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const after = (ms: number, done: () => void): void => void agenda.in(ms, done, this.life)
    const fail = (): void => reject(new StoreError('unreachable'))
    const cut = (): void => after(chance.pick(CUT), fail)
    if (limit < Infinity) after(limit, fail)
    const site = `store.shards.${name}`
    const sent = this.sites.pass(site, 'before', FAULTS)
    if (sent === 'crash') return promise
    if (sent !== null) this.life.disturbed = 'alone'
    if (sent === 'lost' || this.isCut || (name === 'renew' && this.#shared.isOverloaded)) {
      cut()
      return promise
    }
    agenda.in(chance.pick(WAY) + (sent === 'slow' ? chance.pick(LATE_REPLY) : 0), () => {
      let settle: () => void
      try {
        const result = run()
        settle = () => resolve(result)
      } catch (error) {
        const why = error instanceof Error ? error : new Error(String(error))
        settle = () => reject(why)
      }
      if (!this.life.alive) return
      const way = this.sites.pass(site, 'after', FAULTS)
      if (way === 'crash') return
      if (way !== null) this.life.disturbed = 'alone'
      if (!written && (way === 'lost' || this.isCut)) return cut()
      after(chance.pick(WAY) + (way === 'slow' ? chance.pick(LATE_REPLY) : 0), settle)
    })
    return promise
  }

  #claimedOf(shard: number): number {
    let count = 0
    for (const place of this.#claims.values()) if (place === shard) count++
    return count + (this.#beginning.get(shard) ?? 0)
  }

  /** What was claimed of shards that are gone is another's. */
  #forgetClaims(shards: readonly number[]): void {
    for (const [key, place] of this.#claims) {
      if (!shards.includes(place)) continue
      this.#claims.delete(key)
      this.#free(key)
    }
  }

  /** Returns a claim in memory. */
  #free(key: string): void {
    const [kind = '', id = ''] = key.split(/ (.*)/s)
    if (kind === 'hint')
      void this.#inner.hints.release({
        sessionId: id === '' ? null : id,
        claim: { lease: this.#own, generation: 0 },
      })
    else if (kind === 'lane')
      void this.#inner.lanes.release({ id: Number(id), handler: '', key: '', lease: this.#own })
    else void this.#inner.calls.release(id, this.#own)
  }

  /** The session of a lane. A fact of an unordered handler has a lane of its own, and without a session the place of that key. */
  #sessionOf(key: string): string | null {
    if (key === '') return null
    return key.startsWith('evt_') ? (this.#factSession.get(key) ?? key) : key
  }

  /** Claims for the lease of the session's shard; null: another process has it, or takes it soon. */
  #claim(key: string, sessionId: string | null): Lease | null {
    const place = placeOf(sessionId ?? '')
    if (this.membership.refusal !== null || !this.membership.mayClaim(place)) return null
    this.#claims.set(key, place)
    return this.membership.leaseOf(place)
  }

  /** What an inner claim brought and is not given out is returned at once. */
  #give(key: string, sessionId: string | null, room: number): Lease | null {
    const lease = room > 0 ? this.#claim(key, sessionId) : null
    if (lease === null) this.#free(key)
    return lease
  }

  #unclaim(key: string, lease: Lease): void {
    if (this.membership.holds(lease)) this.#claims.delete(key)
  }

  /** A process whose time is over must not act on what it reads. */
  async #reach(): Promise<void> {
    const { refusal } = this.membership
    if (refusal !== null) throw refusal
    if (!this.isCut) return
    const { agenda, chance } = this.#shared.parts
    await new Promise<void>((resolve) => void agenda.in(chance.pick(CUT), resolve, this.life))
    throw new StoreError('unreachable')
  }

  #wake(topics: readonly WakeTopic[], subjects: Wake['hints'] = []): void {
    for (const topic of topics) this.#wakes.add(topic)
    this.#subjects.push(...subjects)
    if (this.#isWaking) return
    this.#isWaking = true
    this.#shared.parts.agenda.in(
      0,
      () => {
        this.#isWaking = false
        const wake = { topics: this.#wakes, hints: this.#subjects }
        this.#wakes = new Set()
        this.#subjects = []
        const isNew = this.#reported > this.#sent
        const span = { after: this.#hasGap ? this.#reported : this.#sent, last: this.#reported }
        if (isNew) this.#hasGap = false
        this.#sent = this.#reported
        if (!this.isCut) this.#shared.wake(this, wake, span)
      },
      this.life,
    )
  }

  #faceOf(inner: Store): Store {
    const reach = async <T>(run: () => Promise<T>): Promise<T> => {
      await this.#reach()
      const result = await run()
      const { refusal } = this.membership
      if (refusal !== null) throw refusal
      return result
    }
    const guarded = <P extends object>(part: P): P => wrapEach(part, reach)
    const concerning = <P extends object>(part: P): P =>
      wrapEach(part, (run) => this.#concern(() => reach(run)))
    const { membership } = this
    const operator = concerning(inner.operator)
    const settings = concerning(inner.settings)
    return {
      log: { ...guarded(inner.log), commit: (batch, patience) => this.#commit(batch, patience) },
      resources: guarded(inner.resources),
      hints: {
        claim: (room, except) => reach(() => this.#claimHints(room, except)),
        nextDue: (except) => reach(async () => this.#nextHint(except)),
        retry: (hint, after) => this.#returnHint(hint, () => inner.hints.retry(hint, after)),
        defer: (hint, after) => this.#returnHint(hint, () => this.#defer(hint, after)),
        finishSweep: (hint) => this.#returnHint(hint, () => inner.hints.finishSweep(hint)),
        release: (hint) => this.#returnHint(hint, () => inner.hints.release(hint)),
      },
      lanes: {
        ...inner.lanes,
        claim: (room) => reach(() => this.#claimLanes(room)),
        nextDue: (handler) => reach(async () => this.#nextLane(handler)),
        // A lane that is gone has nothing, though its session has: the leader removes empty lanes that others have claimed.
        read: (lane, ...rest) =>
          reach(async () =>
            this.#laneKey.get(lane.id) === undefined
              ? { deliveries: [], complete: true }
              : inner.lanes.read(lane, ...rest),
          ),
        retry: async (lane, after) => {
          await inner.lanes.retry(lane, after)
          this.#unclaim(`lane ${lane.id}`, lane.lease)
        },
        release: async (lane) => {
          await inner.lanes.release(lane)
          this.#unclaim(`lane ${lane.id}`, lane.lease)
        },
      },
      calls: {
        claim: (room) => reach(() => this.#claimCalls(room)),
        nextDue: (room) => reach(async () => this.#nextCall(room)),
        get: (callId) => reach(() => inner.calls.get(callId)),
        release: async (callId, lease) => {
          await inner.calls.release(callId, lease)
          this.#unclaim(`call ${callId}`, lease)
        },
      },
      settings: {
        ...settings,
        setCheckpoint: async (name, value, topic) => {
          await settings.setCheckpoint(name, value)
          if (topic !== undefined) this.#wake([topic])
        },
        pauseHandler: async (name, reason) => {
          const since = await settings.pauseHandler(name, reason)
          this.#wake(['handlers'])
          return since
        },
        saveSubscription: async (record) => {
          await settings.saveSubscription(record)
          this.#wake(['secrets'])
        },
        forgetSubscription: async (id) => {
          await settings.forgetSubscription(id)
          this.#wake(['secrets'])
        },
      },
      operator: {
        retry: async (selection) => {
          const done = await operator.retry(selection)
          this.#wake(['lanes'])
          return done
        },
        replay: async (handler, from) => {
          const done = await operator.replay(handler, from)
          this.#wake(['lanes'])
          return done
        },
      },
      shards: {
        owns: (sessionId) => this.#owns(sessionId),
        get leads() {
          return membership.leads
        },
        subscribe: (subscriber) => membership.subscribe(subscriber),
        join: () => membership.join(),
        leave: () => membership.leave(),
        replicas: () => reach(() => this.#shared.list(this.id)),
        describe: (report) => membership.describe(report),
        report: ({ streamConnected }) => membership.connected(streamConnected),
        get streamConnected() {
          return membership.streamConnected
        },
        shareTransient: (event) => {
          if (!this.isCut) this.#shared.pass(this, event)
        },
      },
      read: inner.read,
      close: () => Promise.resolve(this.leave()),
    }
  }

  /** Runs a write that may concern other processes: one that changes more than lanes of its own shards. */
  async #concern<T>(run: () => Promise<T>): Promise<T> {
    this.#concerning++
    try {
      return await run()
    } finally {
      this.#concerning--
      if (this.#concerning === 0) {
        this.#reported = this.#shared.row(this.id).noted
        this.#wake([])
      }
    }
  }

  async #commit(given: Batch, patience?: number): Promise<Committed> {
    await this.#reach()
    // A call whose shard is another's has not begun.
    const newCalls = given.newCalls?.map((call): Call =>
      call.state === 'running' && !this.#mayClaim(call.sessionId)
        ? (transition(call, { type: 'run_withdrawn' }) ?? call)
        : call,
    )
    const begun = (newCalls ?? []).filter(({ state }) => state === 'running')
    for (const { sessionId } of begun) this.#begin(placeOf(sessionId), 1)
    let committed: Committed
    try {
      const batch = newCalls === undefined ? given : { ...given, newCalls }
      const commit = (): Promise<Committed> => this.#inner.log.commit(batch, patience)
      committed = await (Object.keys(batch).every((part) => part === 'acks')
        ? commit()
        : this.#concern(commit))
      this.#applyClaims(committed)
    } finally {
      for (const { sessionId } of begun) this.#begin(placeOf(sessionId), -1)
    }
    for (const { sessionId } of given.hints ?? []) this.#hinted(sessionId ?? '')
    this.#report(given, committed)
    if (this.#isUnknown) {
      this.#isUnknown = false
      // Before the commit is reported: what it adds to a lane comes behind what is looked for.
      this.membership.missed()
    }
    return committed
  }

  #hinted(key: string): void {
    const { hinted } = this.#shared
    hinted.set(key, (hinted.get(key) ?? new Set()).add(this))
  }

  #begin(shard: number, by: number): void {
    this.#beginning.set(shard, (this.#beginning.get(shard) ?? 0) + by)
  }

  /** Whether its work is this process's. */
  #owns(sessionId: string | null): boolean {
    const { membership } = this
    return membership.refusal === null && membership.holds(membership.leaseOf(placeOf(sessionId ?? '')))
  }

  #mayClaim(sessionId: string | null): boolean {
    return this.membership.refusal === null && this.membership.mayClaim(placeOf(sessionId ?? ''))
  }

  /** What a commit claimed is claimed for the leases of its shards, or not at all. */
  #applyClaims(committed: Committed): void {
    for (const extension of committed.lanes) {
      const { lane } = extension
      const sessionId = this.#sessionOf(lane.key)
      const lease = extension.claimed ? this.#give(`lane ${lane.id}`, sessionId, 1) : null
      extension.claimed = lease !== null
      extension.lane = { ...lane, lease: lease ?? this.membership.leaseOf(placeOf(sessionId ?? '')) }
    }
    for (const added of committed.newCalls) {
      if (added.lease === null) continue
      const place = placeOf(this.#sessionOfCall(added.callId) ?? '')
      added.lease = this.membership.leaseOf(place)
      this.#claims.set(`call ${added.callId}`, place)
    }
  }

  #sessionOfCall(callId: string): string | null {
    return this.#calls.all().find((row) => row.call_id === callId)?.session_id ?? null
  }

  /** Wakes the others for what is theirs. */
  #report(batch: Batch, committed: Committed): void {
    const others = (sessionId: string | null): boolean => !this.#owns(sessionId)
    const topics: WakeTopic[] = []
    if (committed.facts.length > 0) topics.push('facts')
    if (committed.lanes.some(({ lane }) => others(this.#sessionOf(lane.key)))) topics.push('lanes')
    const hints = (batch.hints ?? []).filter(({ sessionId }) => others(sessionId))
    if (hints.length > 0) topics.push('hints')
    if (committed.newCalls.some(({ callId }) => others(this.#sessionOfCall(callId)))) topics.push('calls')
    if ((batch.calls ?? []).some(({ callId }) => others(this.#sessionOfCall(callId)))) topics.push('calls')
    const subjects = hints.flatMap(({ sessionId, subject }) =>
      sessionId === null || subject === undefined ? [] : [{ sessionId, subject }],
    )
    this.#wake(topics, subjects)
  }

  async #claimHints(room: number, except?: ReadonlySet<string>): Promise<HintedSession[]> {
    let left = room
    const claimed: HintedSession[] = []
    for (const hint of await this.#inner.hints.claim(ALL, except)) {
      const lease = this.#give(`hint ${hint.sessionId ?? ''}`, hint.sessionId, left)
      if (lease === null) continue
      const elsewhere = [...(this.#shared.hinted.get(hint.sessionId ?? '') ?? [])].some(
        (face) => face !== this,
      )
      claimed.push({ ...hint, elsewhere, claim: { ...hint.claim, lease } })
      left--
    }
    return claimed
  }

  async #returnHint(hint: ClaimedHint, run: () => Promise<void>): Promise<void> {
    await this.#concern(run)
    const key = hint.sessionId ?? ''
    if (this.#hintNow.get(key) === undefined) this.#shared.hinted.delete(key)
    this.#unclaim(`hint ${key}`, hint.claim.lease)
  }

  /** A hint that another process stored since the claim waits for nothing. */
  async #defer(hint: ClaimedHint, after: number): Promise<void> {
    await this.#inner.hints.defer(hint, after)
    const key = hint.sessionId ?? ''
    const generation = this.#hintNow.get(key)
    if (generation !== undefined && generation !== hint.claim.generation)
      this.#hintDue.run(Math.ceil(this.#shared.parts.agenda.now), key)
  }

  async #claimLanes({ lanes, ...room }: LaneRoom): Promise<Lane[]> {
    let left = lanes
    const claimed: Lane[] = []
    for (const lane of await this.#inner.lanes.claim({ ...room, lanes: ALL })) {
      const lease = this.#give(`lane ${lane.id}`, this.#sessionOf(lane.key), left)
      if (lease === null) continue
      claimed.push({ ...lane, lease })
      left--
    }
    return claimed
  }

  async #claimCalls(room: CallRoom): Promise<ClaimedCall[]> {
    const left = new Map<string | null, number>()
    const leftOf = (name: string | null): number =>
      left.get(name) ?? (name === null ? room.others : room.of(name))
    const claimed: ClaimedCall[] = []
    for (const { call } of await this.#inner.calls.claim({ others: ALL, of: () => ALL })) {
      const { callId, sessionId } = call
      const name = call.state === 'received' ? call.name : null
      const lease = this.#give(`call ${callId}`, sessionId, leftOf(name))
      if (lease === null) continue
      claimed.push({ call, lease })
      left.set(name, leftOf(name) - 1)
    }
    return claimed
  }

  #nextHint(except?: ReadonlySet<string>): number | null {
    const hints = this.#hints.all().filter(({ session_id: id }) => except?.has(id) !== true)
    return this.#next(hints, ({ session_id: id }) => ({
      key: `hint ${id}`,
      sessionId: id === '' ? null : id,
    }))
  }

  #nextLane(handler: string): number | null {
    return this.#next(this.#lanes.iterate(handler), ({ id, key }) => ({
      key: `lane ${id}`,
      sessionId: this.#sessionOf(key),
    }))
  }

  #nextCall(room: CallRoom): number | null {
    const rows = this.#calls
      .all()
      .filter(({ name, state }) => (state === 'received' ? room.of(name) : room.others) > 0)
    return this.#next(rows, ({ call_id: id, session_id: sessionId }) => ({ key: `call ${id}`, sessionId }))
  }

  /** Milliseconds until the first row is due that is ours and free. */
  #next<R extends { due_at: number }>(
    rows: Iterable<R>,
    nameOf: (row: R) => { key: string; sessionId: string | null },
  ): number | null {
    for (const row of rows) {
      const { key, sessionId } = nameOf(row)
      if (this.#claims.has(key) || !this.#mayClaim(sessionId)) continue
      return Math.max(0, row.due_at - this.#shared.parts.agenda.now)
    }
    return null
  }
}

/** The functions of `part`, each run by `wrap`. */
function wrapEach<P extends object>(part: P, wrap: (run: () => Promise<unknown>) => Promise<unknown>): P {
  return Object.fromEntries(
    Object.entries(part).map(([name, call]) => [
      name,
      (...args: unknown[]) => wrap(() => (call as (...args: unknown[]) => Promise<unknown>)(...args)),
    ]),
  ) as P
}
