import type { Lease } from '../../core/lease.ts'
import type { RenewalOutcome } from '../../core/observer.ts'
import {
  LEASE,
  SHARDS,
  shardOf,
  WAKE_TOPICS,
  type ShardTopics,
  type StreamState,
  type Wake,
  type WakeTopic,
} from '../../core/shards.ts'
import { StoreError } from '../../core/store-error.ts'
import type { Clock, Timer } from '../../std/ports.ts'

/** The time between two renewals, milliseconds. */
const RENEWED = 5000
/** A process stops reading and writing so long before its leases end, milliseconds. */
const MARGIN = 3000
/** Milliseconds until a failed renewal is repeated. */
const ASKED = 500
/** The time between two checks of the other processes, milliseconds. */
const LOOKED = 1000
/**
 * A process whose leases have ended by the store's clock is dead only if this one has seen no renewal for SILENT milliseconds,
 * while it renewed its own. An administrator may set the clock of the database forward; then all leases seem to have ended.
 */
const SILENT = 12_000
/**
 * A check adds at most so much to the silence of the others, milliseconds. While a database fails over, no process can renew its
 * leases, and none can check. The first one that reaches the new primary must not fence the others, which reach it a moment later.
 */
const HEARD = 2 * LOOKED
/** The time between two checks while a shard waits to be handed over, milliseconds. */
const DRAINED = 100
/** A wake that was sent arrives within this time, milliseconds; otherwise it was lost. */
const ARRIVED = 100
/** A busy shard must become idle within this time to be handed over, milliseconds. */
const PATIENCE = 3000
/** If it does not, it is kept for this long, milliseconds. */
const KEPT = 30_000

/** The shard of what exists once per organization: the stream, the sweep and the lane of facts without a session. */
export const LEADER = -1

/** The shard of a session, or `LEADER` for what belongs to the organization (''). */
export function placeOf(sessionId: string): number {
  return sessionId === '' ? LEADER : shardOf(sessionId)
}

/** A wake for all topics. It stands in for the wake of another process that may have been lost. */
const ALL: Wake = { topics: new Set(WAKE_TOPICS), hints: [] }
/**
 * The same in two parts. A look at the lanes is dear: in a burst with two replicas, the leader read half of its deliveries
 * from the store, though it had them in memory. So it looks at them only if a wake was lost.
 */
const LANES: Wake = { topics: new Set<WakeTopic>(['lanes']), hints: [] }
const OTHERS: Wake = { topics: new Set(WAKE_TOPICS.filter((topic) => topic !== 'lanes')), hints: [] }

/** The row of another process. */
export interface Other {
  /** Its last renewal; the next one has another text. */
  renewal: string
  /** By the store's clock, its leases have ended. */
  isOver: boolean
  /** Whether it takes shards. */
  joined: boolean
}

/** What a process finds out about the others. */
export interface Survey {
  /** The processes that are not fenced, but this one. */
  others: ReadonlyMap<string, Other>
  /** Leases without an owner. */
  free: Wanted
  /** Whether the stream is connected, as the leader last reported it. */
  streamConnected: boolean
  /** Of each other process the number of its last write that may concern this one. */
  noted: ReadonlyMap<string, number>
}

/** Which writes of another process a wake reports: those after the number `after`, up to the number `last`. */
export interface WakeSpan {
  after: number
  last: number
}

export interface Wanted {
  leader: boolean
  shards: number
}

/** A lease that this process has. */
export interface Granted {
  /** The number of the shard, or `LEADER`. */
  shard: number
  epoch: number
}

export interface Presence extends StreamState {
  /** Whether it takes shards. */
  joined: boolean
  /** What it reports about itself, for people; null: nothing yet. */
  report: string | null
}

/** The rows of processes and leases, as one process writes them. All leases of one process live and end together. */
export interface LeaseTable {
  /** Renews all leases of this process for `ttl` milliseconds, in a statement of its own. false: it is fenced. */
  renew(presence: Presence, ttl: number): Promise<boolean>
  survey(): Promise<Survey>
  /** Waits for the writes of `dead` that are under way, fences it if `renewal` is still its last one, and frees its leases. */
  fence(dead: string, renewal: string): Promise<void>
  /**
   * Takes free leases, each under an epoch that was never given. The same transaction records the open attempts of the
   * former owners as interrupted.
   */
  take(wanted: Wanted): Promise<Granted[]>
  /** Releases leases, in a write of this process. */
  release(given: readonly Granted[]): Promise<void>
}

/** The most shards that each of `live` processes has. */
function fairShare(live: number): number {
  return Math.ceil(SHARDS / live)
}

export interface MembershipReports {
  onRenewal?: ((outcome: RenewalOutcome) => void) | undefined
  /** Called once, when the process is fenced. */
  onLost?: ((error: StoreError) => void) | undefined
  /** Leases could not be read or taken. It is tried again. */
  onFailed?: ((error: unknown) => void) | undefined
}

interface MembershipParts extends MembershipReports {
  /** The name of this process, which no other process ever has. */
  id: string
  table: LeaseTable
  clock: Clock
  /** The number of claims of a shard that are not released. */
  claimed: (shard: number) => number
}

/**
 * What one of several processes owns. It renews its leases, takes over those of a process that stopped, and hands over what
 * is above its share. A process that was frozen for long refuses to read and write until it has renewed its leases.
 */
export class Membership {
  readonly id: string
  readonly #parts: MembershipParts
  readonly #subscribers: Partial<ShardTopics>[] = []
  /** The epoch of each shard that is owned; the leader's is among them. */
  readonly #epochs = new Map<number, number>()
  readonly #held = new Set<number>()
  /** Shards to hand over, and since when. Nothing more of them is claimed. */
  readonly #draining = new Map<number, number>()
  /** Busy shards that are kept, and until when. */
  readonly #kept = new Map<number, number>()
  /** The shards of `#epochs` that are not being drained. null: every shard, and the lead. */
  #claimable: readonly number[] | null = []
  #live = 1
  /** The last survey's. */
  #noted: ReadonlyMap<string, number> = new Map()
  /** The last renewal of each other process, and for how many milliseconds no other one came. */
  #silences: ReadonlyMap<string, { renewal: string; ms: number }> = new Map()
  /** When the last survey came, steady milliseconds. */
  #surveyedAt = -Infinity
  /** Of each other process the number of its last write that a wake reported, or for which this process has looked. */
  readonly #reported = new Map<string, number>()
  /** Runs when wakes on their way have arrived, or were lost. */
  #arrival: Timer | null = null
  #state: 'new' | 'joined' | 'left' | 'stopped' = 'new'
  #streamConnected = false
  #describe: () => string | null = () => null
  /** When the last renewal that succeeded began, steady milliseconds. */
  #asked = -Infinity
  #lost: StoreError | null = null
  #renewal: Timer | null = null
  #timer: Timer | null = null
  #looking: Promise<void> | null = null
  #again = false

  constructor(parts: MembershipParts) {
    this.id = parts.id
    this.#parts = parts
  }

  get leads(): boolean {
    return this.#epochs.has(LEADER)
  }

  get streamConnected(): boolean {
    return this.#streamConnected
  }

  /** The number of processes that take shards. One that was killed counts until it is fenced. */
  get live(): number {
    return this.#live
  }

  /** Whether there is no other process. Before it joins, a process does not know. */
  get isAlone(): boolean {
    return this.#state === 'joined' && this.#live <= 1
  }

  /** The number of shards that this process owns. */
  get owned(): number {
    return this.#epochs.size - (this.leads ? 1 : 0)
  }

  /** Whether this process may claim items of a shard. */
  mayClaim(shard: number): boolean {
    return this.#claimable === null || this.#claimable.includes(shard)
  }

  /** The shards whose items this process may claim; null: all. */
  get claimable(): readonly number[] | null {
    return this.#claimable
  }

  /** The lease for claims of a shard. If another process owns the shard, no process holds this lease. */
  leaseOf(shard: number): Lease {
    return { owner: this.id, epoch: this.#epochs.get(shard) ?? 0 }
  }

  /** Whether claims under `lease` are still valid. */
  holds({ owner, epoch }: Lease): boolean {
    return this.#lost === null && owner === this.id && this.#held.has(epoch)
  }

  /** Why this process may never write again; null: it is not fenced. */
  get lost(): StoreError | null {
    return this.#lost
  }

  /** Why nothing may be read or written now. Leases that have ended can be renewed until another process fences this one. */
  get refusal(): StoreError | null {
    if (this.#lost !== null || this.#parts.clock.steady() <= this.#asked + LEASE - MARGIN) return this.#lost
    return new StoreError('unreachable', new Error('the leases could not be renewed in time'))
  }

  /** @returns the first reason for which it was lost. */
  lose(error: StoreError): StoreError {
    if (this.#lost !== null) return this.#lost
    this.#lost = error
    this.stop()
    this.#parts.onLost?.(error)
    return error
  }

  subscribe(subscriber: Partial<ShardTopics>): void {
    this.#subscribers.push(subscriber)
  }

  /** Runs `call`, which calls one topic, for each subscriber. */
  report(call: (to: Partial<ShardTopics>) => void): void {
    for (const one of this.#subscribers) call(one)
  }

  /** A commit that failed may have been stored: each subscriber looks for what it would have reported. */
  missed(): void {
    this.report((to) => to.missed?.())
    this.#wake()
  }

  #wake(): void {
    this.report((to) => to.woken?.(ALL))
  }

  /** A wake of the process `from` has arrived. If one before it was lost, this process looks at its lanes. */
  heard(from: string, { after, last }: WakeSpan): void {
    const reported = this.#reportedOf(from)
    this.#reported.set(from, Math.max(reported, last))
    if (after > reported) this.#lookAtLanes()
  }

  #reportedOf(id: string): number {
    return this.#reported.get(id) ?? 0
  }

  #lookAtLanes(): void {
    this.report((to) => to.woken?.(LANES))
  }

  /** Looks for what the others have written since the last survey. */
  #follow(noted: ReadonlyMap<string, number>): void {
    const before = this.#noted
    this.#noted = noted
    const gone = [...before.keys()].filter((id) => !noted.has(id))
    for (const id of gone) this.#reported.delete(id)
    if (gone.length > 0 || [...noted].some(([id, last]) => before.get(id) !== last))
      this.report((to) => to.woken?.(OTHERS))
    // The last wake of a process that has ended may be missing.
    if (gone.length > 0) this.#lookAtLanes()
    this.#awaitWakes()
  }

  /** Wakes on their way are awaited. Then this process looks for the writes that none has reported. */
  #awaitWakes(): void {
    const isLate = ([id, last]: [string, number]): boolean => last > this.#reportedOf(id)
    const awaited = [...this.#noted].filter(isLate)
    if (awaited.length === 0 || this.#arrival !== null) return
    this.#arrival = this.#parts.clock.after(ARRIVED, () => {
      this.#arrival = null
      const lost = awaited.filter(isLate)
      for (const [id, last] of lost) this.#reported.set(id, last)
      if (lost.length > 0) this.#lookAtLanes()
    })
  }

  /** Notes whether the stream is connected. The next renewal reports it to the other processes. */
  connected(streamConnected: boolean): void {
    this.#streamConnected = streamConnected
  }

  /** Each renewal from now on reports the text of `report` to the other processes. */
  describe(report: () => string): void {
    this.#describe = report
  }

  /** The first renewal; before it, nothing may be read. From then on this process fences others that are silent. */
  async begin(): Promise<void> {
    await this.#renew()
    void this.look()
  }

  /** Begins to take shards. */
  async join(): Promise<void> {
    if (this.#state !== 'new') return
    this.#state = 'joined'
    await this.#present()
    await this.look()
  }

  /** Takes nothing more, and hands over the lead, and each shard when it is idle. The other leases end with the process. */
  async leave(): Promise<void> {
    if (this.#state !== 'joined') return
    this.#state = 'left'
    this.#choose()
    await this.#present()
    void this.look()
  }

  /** Reports to the others whether it takes a share. If this renewal fails, the next one reports it. */
  async #present(): Promise<void> {
    this.#renewal?.cancel()
    await this.#renew()
  }

  stop(): void {
    this.#state = 'stopped'
    this.#renewal?.cancel()
    this.#timer?.cancel()
    this.#arrival?.cancel()
  }

  /** A report that cannot be made must not end the leases. */
  #describeSelf(): string | null {
    try {
      return this.#describe()
    } catch (error) {
      this.#parts.onFailed?.(error)
      return null
    }
  }

  async #renew(): Promise<void> {
    const { table, clock, onRenewal } = this.#parts
    const asked = clock.steady()
    let after = ASKED
    try {
      const presence = {
        joined: this.#state === 'joined',
        streamConnected: this.#streamConnected,
        report: this.#describeSelf(),
      }
      const renewed = await table.renew(presence, LEASE)
      // A clean stop has removed the row, so its absence does not mean that this process is fenced.
      if (this.#state === 'stopped') return
      if (!renewed) {
        onRenewal?.('fenced')
        return void this.lose(new StoreError('fenced'))
      }
      this.#asked = Math.max(this.#asked, asked)
      after = RENEWED
      onRenewal?.('renewed')
    } catch {
      // The renewal is repeated. If that takes too long, `refusal` stops reads and writes.
      onRenewal?.('failed')
      // The others may not be able to renew theirs either: from now on, each has the whole time again.
      this.#silences = new Map()
    }
    if (this.#state === 'stopped') return
    this.#renewal?.cancel()
    this.#renewal = clock.after(after, () => void this.#renew())
  }

  /** Checks the other processes now: one of them may have joined, left or handed something over. */
  look(): Promise<void> {
    if (this.#state === 'stopped') return Promise.resolve()
    this.#timer?.cancel()
    if (this.#looking === null) this.#looking = this.#lookAround()
    else this.#again = true
    return this.#looking
  }

  async #lookAround(): Promise<void> {
    do {
      this.#again = false
      try {
        await this.#balance()
      } catch (error) {
        this.#parts.onFailed?.(error)
      }
    } while (this.#again)
    this.#looking = null
    if (this.#state === 'stopped') return
    const after = this.#draining.size > 0 ? DRAINED : LOOKED
    this.#timer = this.#parts.clock.after(after, () => void this.look())
  }

  #isStopped(): boolean {
    return this.#state === 'stopped'
  }

  async #balance(): Promise<void> {
    const { table } = this.#parts
    let survey = await table.survey()
    const dead = this.#deadOf(survey.others)
    for (const [id, renewal] of dead) await table.fence(id, renewal).catch(() => undefined)
    if (this.#state === 'new' || this.#isStopped()) return
    if (dead.length > 0) survey = await table.survey()
    if (this.#isStopped()) return
    const { others, free, streamConnected, noted } = survey
    const joined = [...others.values()].filter((other) => other.joined).length
    const live = Math.max(1, joined + (this.#state === 'joined' ? 1 : 0))
    if (!this.leads) this.#streamConnected = streamConnected
    if (live !== this.#live) {
      this.#live = live
      this.report((to) => to.population?.(live))
    }
    if (this.#state === 'joined') {
      const room = Math.max(0, Math.min(free.shards, fairShare(live) - this.owned))
      const wanted = { leader: free.leader && !this.leads, shards: room }
      const granted = wanted.leader || room > 0 ? await table.take(wanted) : []
      if (this.#isStopped()) return
      if (granted.length > 0) this.#gain(granted)
    }
    if (this.#isStopped()) return
    this.#follow(noted)
    if (this.#isStopped()) return
    this.#choose()
    await this.#handOver()
  }

  /**
   * The processes to fence, with the last renewal of each. An administrator may set the clock of the database back by an hour:
   * by that clock, the leases of a process that was killed would last an hour longer. So a process is also dead if this one has
   * seen no renewal for as long as a lease lasts.
   *
   * With a pooler that is overloaded, reads may succeed while no process renews its leases in time. So one that cannot renew its
   * own fences no other.
   */
  #deadOf(others: ReadonlyMap<string, Other>): [id: string, renewal: string][] {
    const now = this.#parts.clock.steady()
    const passed = Math.min(now - this.#surveyedAt, HEARD)
    this.#surveyedAt = now
    const silences = new Map<string, { renewal: string; ms: number }>()
    const dead: [string, string][] = []
    for (const [id, { renewal, isOver }] of others) {
      const before = this.#silences.get(id)
      const ms = before?.renewal === renewal ? before.ms + passed : 0
      silences.set(id, { renewal, ms })
      if (ms > LEASE || (isOver && ms >= SILENT)) dead.push([id, renewal])
    }
    this.#silences = silences
    return now - this.#asked < RENEWED + ASKED ? dead : []
  }

  #gain(granted: readonly Granted[]): void {
    for (const { shard, epoch } of granted) {
      this.#epochs.set(shard, epoch)
      this.#held.add(epoch)
    }
    this.#change()
    const shards = granted.flatMap(({ shard }) => (shard === LEADER ? [] : [shard]))
    if (shards.length < granted.length) {
      // The known state is that of the former leader's stream.
      this.#streamConnected = false
      this.report((to) => to.led?.())
    }
    if (shards.length > 0) this.report((to) => to.gained?.(shards))
  }

  /**
   * Chooses the shards to hand over, which are those above the share: idle ones first, then those that are being
   * drained already.
   */
  #choose(): void {
    const { clock, claimed } = this.#parts
    const now = clock.steady()
    const leaves = this.#state === 'left'
    let taken = false
    for (const [shard, since] of leaves ? [] : this.#draining)
      if (now - since > PATIENCE && claimed(shard) > 0) this.#kept.set(shard, now + KEPT)
    for (const [shard, until] of this.#kept) if (leaves || until <= now) this.#kept.delete(shard)
    const surplus = leaves ? Infinity : this.owned - fairShare(this.#live)
    const order = (shard: number): number => (claimed(shard) === 0 ? 0 : this.#draining.has(shard) ? 1 : 2)
    const chosen = [...this.#epochs.keys()]
      .filter((shard) => (leaves || shard !== LEADER) && !this.#kept.has(shard))
      .toSorted((a, b) => order(a) - order(b))
      .slice(0, Math.max(0, surplus))
    for (const shard of this.#draining.keys()) {
      if (chosen.includes(shard)) continue
      this.#draining.delete(shard)
      taken = true
    }
    for (const shard of chosen) if (!this.#draining.has(shard)) this.#draining.set(shard, now)
    this.#change()
    // Work that arrived for these shards while they were being drained was not claimed.
    if (taken) this.#wake()
  }

  /** A drained shard is owned until its release is written, but nothing of it is claimed. */
  async #handOver(): Promise<void> {
    const idle = [...this.#draining.keys()].filter((shard) => this.#parts.claimed(shard) === 0)
    if (idle.length === 0) return
    const given = idle.map((shard) => ({ shard, epoch: this.#epochs.get(shard) ?? 0 }))
    await this.#parts.table.release(given)
    for (const { shard, epoch } of given) {
      this.#epochs.delete(shard)
      this.#held.delete(epoch)
      this.#draining.delete(shard)
    }
    this.#change()
    const shards = idle.filter((shard) => shard !== LEADER)
    this.report((to) => to.lost?.(shards))
  }

  #change(): void {
    const leaves = this.#state === 'left'
    const free = leaves ? [] : [...this.#epochs.keys()].filter((shard) => !this.#draining.has(shard))
    this.#claimable = free.length === SHARDS + 1 ? null : free
  }
}
