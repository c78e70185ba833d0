import type { AddedCall, Call, CallRoom, ClaimedCall } from './call.ts'
import type { CallStep } from './call-machine.ts'
import type { Ack, Lane, LaneExtension, LanePage } from './delivery.ts'
import type { Channel, Fact, Seen, StoredFact } from './fact.ts'
import type { Hint, HintScope } from './hint.ts'
import type { Lease } from './lease.ts'
import type { Action, Session, SessionSummary, Turn } from './resource.ts'
import type { HeldFrames, OwnerNote, OwnerRecord } from './scope.ts'
import type { Shards, WakeTopic } from './shards.ts'
import type { HandlerRecord, StoreReader } from './store-reader.ts'

/**
 * All durable state. Several replicas may share one database, so the port is asynchronous and work must be claimed.
 * The promise of a write resolves only after the write is durable. The store's clock decides what is due: callers
 * pass and get milliseconds from now, never the time of their own clock.
 */
export interface Store {
  log: FactLog
  resources: Resources
  hints: HintQueue
  lanes: LaneQueue
  calls: CallQueue
  settings: Settings
  operator: Operator
  shards: Shards
  read: StoreReader
  close(): Promise<void>
}

export interface FactLog {
  /**
   * The only way to add facts: a batch is stored whole, or nothing of it. `patience`: milliseconds that it may wait to
   * share the commit of another write.
   */
  commit(batch: Batch, patience?: number): Promise<Committed>
  /**
   * State facts, older than `age` milliseconds, that a channel should have reported and did not. Each is returned once.
   * `expected`: the types that each channel reports. Each step has a bounded length; `more`: another step is needed.
   */
  missed(expected: Expected, age: number): Promise<{ missed: Miss[]; more: boolean }>
  /** Removes delivered facts older than `age` milliseconds, and counts them, in steps as in `missed`. */
  prune(age: number): Promise<{ facts: number; more: boolean }>
}

/** Sessions, turns and actions as last read. With a scope, also the owners of sessions. */
export interface Resources {
  /** The stored state of a session, with the turns of `turnIds`: null when it was never read. */
  known(sessionId: string, turnIds?: readonly string[]): Promise<KnownSession | null>
  /** Turns that are not settled, and those of `turnIds`. Turns that only a frame reported are included. */
  knownTurns(sessionId: string, turnIds: readonly string[]): Promise<KnownTurn[]>
  /** Title, metadata and status of a session; null when it was never read. */
  summary(sessionId: string): Promise<SessionSummary | null>
  /** The stored state of each of `ids`, for comparison with a page of the service's list. */
  glance(ids: readonly string[]): Promise<Map<string, SessionGlance>>
  /** Sessions that are not known to be deleted, in the order of their ids, from after `after`. */
  alive(after: string, limit: number): Promise<string[]>
  /** Sessions that are neither known to be deleted nor idle, in the order of their ids, from after `after`. */
  active(after: string, limit: number): Promise<string[]>
  /** Numbers of sessions: those not known to be deleted, those of them that are not idle, and foreign ones. */
  count(): Promise<{ alive: number; active: number; foreign: number }>
  /** The owner of each of `ids`; only with a scope. */
  owners(ids: readonly string[]): Promise<Map<string, OwnerRecord>>
  /**
   * Sessions that have only an owner entry, older than `age` milliseconds, in the order of their ids, from after
   * `after`.
   */
  strangers(age: number, after: string, limit: number): Promise<string[]>
  heldFrames(): Promise<HeldFrames>
}

/*
 * The verbs of the three work queues, which show a process only what its shards hold:
 * - `claim(room)`: items that are due and free, the longest due first, as many as there is room for. Only the caller
 *   works on them, until it releases them or its lease ends.
 * - `retry(…, after)` frees an item, which is due again after so many milliseconds. `release` frees it unchanged.
 *   After the end of the lease both do nothing.
 * - `nextDue`: milliseconds until a free item is due; 0: now; null: no item is known.
 *
 * A commit also changes claimed items: the result of a read changes its hint, a step changes its call, and an ack
 * changes its lane.
 */

/** Sessions to read, one hint each, and the request for a sweep (null). */
export interface HintQueue {
  /** `except`: sessions whose hints are left out. */
  claim(room: number, except?: ReadonlySet<string>): Promise<HintedSession[]>
  /** The read failed; the failure is counted. */
  retry(hint: ClaimedHint, after: number): Promise<void>
  /**
   * Nothing failed, but the read has no result yet: due again after `after`, or when a hint that came since the claim
   * is due.
   */
  defer(hint: ClaimedHint, after: number): Promise<void>
  /** Called after the commit that cleared the hint, or that found a newer one. */
  release(hint: ClaimedHint): Promise<void>
  /** Removes the request for a sweep, unless a new one came since the claim, and releases the claim. */
  finishSweep(hint: ClaimedHint): Promise<void>
  nextDue(except?: ReadonlySet<string>): Promise<number | null>
}

/** Pending deliveries by lane. */
export interface LaneQueue {
  claim(room: LaneRoom): Promise<Lane[]>
  retry(lane: Lane, after: number): Promise<void>
  release(lane: Lane): Promise<void>
  nextDue(handler: string): Promise<number | null>
  /** Pending deliveries of a lane after `after`, in order; at most `limit` facts and about `maxBytes` (one at least). */
  read(lane: Lane, after: number, limit: number, maxBytes: number): Promise<LanePage>
  /**
   * An attempt of the facts at `positions` starts. If it takes long, its start is stored, so that it is known after a
   * crash.
   */
  begin(lane: Lane, positions: readonly number[]): void
  /**
   * The outcome is known and is committed soon. If the start of the attempt is not stored yet, it need not be stored
   * any more.
   */
  end(lane: Lane): void
  /** The attempt ended, and nothing about it is stored. In all other cases an ack stores its outcome. */
  drop(lane: Lane, positions: readonly number[]): void
}

/** How many more lanes of a handler the caller can work on. */
export interface LaneRoom {
  handler: string
  lanes: number
  /** Only lanes that were in memory before, and wait since. New lanes precede them otherwise. */
  returned?: boolean
}

/** Function calls to run or to answer. */
export interface CallQueue {
  claim(room: CallRoom): Promise<ClaimedCall[]>
  release(callId: string, lease: Lease): Promise<void>
  /** Milliseconds until the next call is due, of those for which there is room. */
  nextDue(room: CallRoom): Promise<number | null>
  get(callId: string): Promise<Call | null>
}

/** Values that hold until they are set again. */
export interface Settings {
  /** The value of a checkpoint, null when there is none. */
  checkpoint(name: string): Promise<string | null>
  /** `topic`: the other processes look for its new value at once. */
  setCheckpoint(name: string, value: string | null, topic?: WakeTopic): Promise<void>
  /** Registers the handlers; new ones start without a backlog. */
  registerHandlers(handlers: readonly HandlerRegistration[]): Promise<HandlerRecord[]>
  /** `reason`: null ends the pause. @returns when the stored pause began, milliseconds; null: there is none. */
  pauseHandler(name: string, reason: string | null): Promise<number | null>
  /** Subscriptions, the newest first. */
  subscriptions(): Promise<SubscriptionRecord[]>
  saveSubscription(record: SubscriptionRecord): Promise<void>
  forgetSubscription(id: string): Promise<void>
  /**
   * Stores bytes that could not be parsed, for inspection. Above the limit the oldest are removed.
   */
  quarantine(entry: { at: number; source: string; reason: string; bytes: string }): Promise<void>
}

/** The actions of an operator. */
export interface Operator {
  /**
   * Makes dead deliveries pending again, and by `id` also a delivered one, in several transactions. `dryRun`: only
   * counts them.
   */
  retry(selection: RetrySelection): Promise<{ count: number }>
  /** Makes past facts that the handler selects pending for it again, in several transactions, the oldest first. */
  replay(handler: string, from: ReplayStart): Promise<{ count: number }>
}

export interface Batch {
  facts?: readonly Fact[]
  hints?: readonly Hint[]
  /** The stream's cursor. It never moves back. */
  cursor?: string
  readings?: readonly Reading[]
  /**
   * Calls that a read found. They are committed before the rest of the read, so that a tool does not wait for it. The
   * caller claims a call that is added as `running`, if its shard is the caller's.
   */
  newCalls?: readonly Call[]
  /** Steps of the call ledger. Facts that depend on a step are committed only with it. */
  calls?: readonly (CallStep & { facts?: readonly Fact[] })[]
  /**
   * Returns the outcomes of attempts. Called when the transaction begins, and again if it is repeated: outcomes that
   * became known while it waited are included.
   */
  acks?: () => readonly Ack[]
  checkpoint?: CheckpointMove
  /**
   * With a scope: facts of foreign sessions are omitted, and frames of unknown sessions are held
   * until their owner is known.
   */
  scoped?: boolean
  /** Written before the rest of the batch. Held frames become facts, or are dropped. */
  owners?: readonly OwnerNote[]
}

/**
 * `from`: the value that the caller knows, null when there is none. If it is another one, nothing of the batch is stored.
 * Absent: it may be any.
 */
export interface CheckpointMove {
  name: string
  to: string
  from?: string | null
}

export interface Committed {
  /** The facts that were new, in order. */
  facts: StoredFact[]
  lanes: LaneExtension[]
  /**
   * Sessions whose read was not written: it was older than the stored state, or its lease had ended. Or the checkpoint
   * that has another value than the caller knew.
   */
  stale: string[]
  /** Calls whose step was refused: the table has no such arrow, or the lease has ended. */
  refused: string[]
  /** Channels that reported a known fact. */
  sightings: { channel: Channel; type: string; at: number; factAt: number }[]
  /** True when hints were added. */
  hinted: boolean
  /** The calls that were new. */
  newCalls: AddedCall[]
  /** All frames that are held now; absent: the commit did not change them. */
  held?: HeldFrames
  /** Frames that were dropped because their session was deleted before its owner was known. */
  unattributed?: number
}

export interface HintClaim {
  lease: Lease
  /** Changes with every hint: a read clears the hint only if no new hint came during the read. */
  generation: number
}

/** The parts of a claimed hint that the queue needs. */
export interface ClaimedHint {
  sessionId: string | null
  claim: HintClaim
}

export interface HintedSession extends ClaimedHint {
  /** Another process stored a hint, too: what this process has read of the session may be older. */
  elsewhere: boolean
  scope: HintScope
  seen: Seen
  /** Consecutive failed reads. */
  failures: number
}

/** The parts of a stored session that show whether an entry of the list has changed. */
export interface SessionGlance {
  status: string
  updatedAt: number
  deleted: boolean
  /** Idle or failed, no open action, every turn settled. */
  atRest: boolean
}

export interface KnownSession extends Pick<SessionGlance, 'deleted' | 'atRest'> {
  revision: number
  session: Session
  /**
   * Service clock. Settled turns that were created up to this time are older than our first start, and make no facts.
   */
  baseline: number
  /** Turns that are not settled, and the newest settled one. */
  turns: KnownTurn[]
  /** Actions that are not resolved. */
  actions: Action[]
  items: KnownItems
}

/** How far the items of a session are in the log. */
export interface KnownItems {
  /** The id of the last one; null: none was read. */
  last: string | null
  /** The checkpoint `ITEMS_SINCE`, which is the same for all sessions. */
  since: string | null
}

export interface KnownTurn {
  turn: Turn
  /** False while only its turn.ended frame reported the turn: then `turn` is a placeholder. */
  read: boolean
  final: boolean
  settled: boolean
  /** Our wall clock: when the stream's turn.ended came. */
  endedFrameAt: number | null
  /** Milliseconds since we first read it as final. */
  finalFor: number | null
  /** The fact of its end is stored. */
  finalFact: boolean
}

/** The result of reading a session, to be written as a whole. */
export interface Reading {
  sessionId: string
  /** The revision that it was compared with; null when the session was not known. */
  revision: number | null
  /** null: the session was deleted. */
  session: Session | null
  baseline: number
  atRest: boolean
  turns: readonly KnownTurn[]
  opened: readonly Action[]
  resolved: readonly string[]
  newCalls: readonly Call[]
  facts: readonly Fact[]
  at: number
  /**
   * `claim`: of the hint that caused the read; the hint is cleared unless its generation changed. null: no hint caused
   * it. `lookAfter`: milliseconds after which it is due again.
   */
  hint: { claim: HintClaim | null; lookAfter: number | null; scope: HintScope }
}

export interface HandlerRegistration {
  name: string
  ordered: boolean
  /** The types that it selects, in the form of core/pattern.ts. */
  events: readonly string[]
}

export interface SubscriptionRecord {
  id: string
  url: string
  secret: string
  createdAt: number
  /**
   * Retired secrets stay valid for a while, because deliveries signed with them may still be under
   * way.
   */
  retiredAt: number | null
}

export type Expected = Partial<Record<Channel, ReadonlySet<string>>>
export type Miss = { channel: Channel; type: string }
export type ReplayStart = { pos: number } | { seq: string } | { at: number }

export interface RetrySelection {
  id?: string
  handler?: string | undefined
  /** Our wall clock: facts stored from then on. */
  since?: number | undefined
  dryRun?: boolean
}
