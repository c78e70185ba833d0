import type { AddedCall, Call, CallRoom, ClaimedCall } from './call.ts'
import type { CallStep } from './call-machine.ts'
import type { Ack, Lane, LaneExtension, PendingDelivery } from './delivery.ts'
import type { Channel, Fact, Seen, StoredFact } from './fact.ts'
import type { Hint, HintScope } from './hint.ts'
import type { Lease } from './lease.ts'
import type { Action, Session, SessionSummary, Turn } from './resource.ts'
import type { HeldFrames, OwnerNote, OwnerRecord } from './scope.ts'
import type { HandlerRecord, StoreReader } from './store-reader.ts'

/**
 * All durable state. The port is asynchronous and work is claimed, so that a database of several
 * replicas fits it too. The promise of a write resolves only after the write is durable. What is
 * due is due on the store's clock: callers hand in and get milliseconds from now, never a reading
 * of a process's clock.
 */
export interface Store {
  log: FactLog
  resources: Resources
  hints: HintQueue
  lanes: LaneQueue
  calls: CallQueue
  settings: Settings
  operator: Operator
  read: StoreReader
  close(): Promise<void>
}

export interface FactLog {
  /**
   * The only way to add facts: all of a batch or nothing. `patience`: it waits up to so many milliseconds to share the
   * commit of another write.
   */
  commit(batch: Batch, patience?: number): Promise<Committed>
  /**
   * State facts, older than `age` milliseconds, that a channel should have reported and did not. Each is returned once.
   * `expected`: the types that each channel reports. A step of bounded length; `more` means that another step follows.
   */
  missed(expected: Expected, age: number): Promise<{ missed: Miss[]; more: boolean }>
  /** Removes delivered facts older than `age` milliseconds, and counts them. A step, as above. */
  prune(age: number): Promise<{ facts: number; more: boolean }>
}

/** Sessions, turns and actions as last read; with a scope, whose sessions are. */
export interface Resources {
  /** The stored state of a session, with the turns of `turnIds`: null when it was never read. */
  known(sessionId: string, turnIds?: readonly string[]): Promise<KnownSession | null>
  /**
   * Turns that are not settled, and those of `turnIds`, including turns that only a frame reported.
   */
  knownTurns(sessionId: string, turnIds: readonly string[]): Promise<KnownTurn[]>
  /** Title, metadata and status of a session; null when it was never read. */
  summary(sessionId: string): Promise<SessionSummary | null>
  /** The stored state of each of `ids`, for comparison with a page of the service's list. */
  glance(ids: readonly string[]): Promise<Map<string, SessionGlance>>
  /** Sessions that are not known to be deleted, by id after `after`. */
  alive(after: string, limit: number): Promise<string[]>
  /** Sessions that we believe to exist and that are not at rest, by id after `after`. */
  active(after: string, limit: number): Promise<string[]>
  /**
   * The number of sessions that are not known to be deleted, of those that are not idle, and of
   * foreign ones.
   */
  count(): Promise<{ alive: number; active: number; foreign: number }>
  /** The owner of each of `ids`; only with a scope. */
  owners(ids: readonly string[]): Promise<Map<string, OwnerRecord>>
  /** Sessions with only an owner entry, older than `age` milliseconds, by id after `after`. */
  strangers(age: number, after: string, limit: number): Promise<string[]>
  heldFrames(): Promise<HeldFrames>
}

/*
 * The verbs of the three work queues. `claim(room)`: what is due and free, as much as there is room for, the longest due
 * first; it is the caller's alone until it gives it back, or its lease ends. `retry(…, after)` gives it back, due again after
 * so many milliseconds; `release` gives it back as it is. After the end of its lease both change nothing. `nextDue`: milliseconds until something free is due, 0 when it is now,
 * null when nothing is known to come. What a commit says of a claimed item (a reading of its hint, a step of its call, an ack of
 * its lane) is part of that commit.
 */

/** Sessions to read, one hint each, and the wish for a sweep (null). */
export interface HintQueue {
  claim(room: number): Promise<HintedSession[]>
  /** The reading failed, which is counted. */
  retry(hint: ClaimedHint, after: number): Promise<void>
  /** Nothing failed, and nothing is answered yet: due again after `after`, or when what came since the claim is. */
  defer(hint: ClaimedHint, after: number): Promise<void>
  /** After the commit that cleared the hint, or that found it renewed. */
  release(hint: ClaimedHint): Promise<void>
  /** The wish for a sweep is fulfilled, unless a new one came meanwhile; gives the claim back. */
  finishSweep(hint: ClaimedHint): Promise<void>
  nextDue(): Promise<number | null>
}

/** Pending deliveries by lane. */
export interface LaneQueue {
  claim(room: LaneRoom): Promise<Lane[]>
  retry(lane: Lane, after: number): Promise<void>
  release(lane: Lane): Promise<void>
  nextDue(handler: string): Promise<number | null>
  /** Pending deliveries of a lane after `after`, in order; at most `limit` facts and about `maxBytes` (one at least). */
  read(lane: Lane, after: number, limit: number, maxBytes: number): Promise<PendingDelivery[]>
  /**
   * An attempt of the facts at `positions` begins. It is written if it takes long, so that a crash
   * cannot hide it.
   */
  begin(lane: Lane, positions: readonly number[]): void
  /** Their outcome is known, and is committed soon: what is not written of them yet need not be. */
  end(lane: Lane): void
  /** It ended, and nothing about it is stored. Otherwise an ack says how it ended. */
  drop(lane: Lane, positions: readonly number[]): void
}

/** How many more lanes of a handler the caller can work on. */
export interface LaneRoom {
  handler: string
  lanes: number
}

/** Function calls that are to be run or answered. */
export interface CallQueue {
  claim(room: CallRoom): Promise<ClaimedCall[]>
  release(callId: string, lease: Lease): Promise<void>
  /** When the next call is due that there is room for. */
  nextDue(room: CallRoom): Promise<number | null>
  get(callId: string): Promise<Call | null>
}

/** What was said once and holds until it is said again. */
export interface Settings {
  /** The value of a checkpoint, null when there is none. */
  checkpoint(name: string): Promise<string | null>
  setCheckpoint(name: string, value: string | null): Promise<void>
  /** Registers the handlers; new ones start without a backlog. */
  registerHandlers(handlers: readonly HandlerRegistration[]): Promise<HandlerRecord[]>
  pauseHandler(name: string, reason: string | null): Promise<void>
  /** The newest first. */
  subscriptions(): Promise<SubscriptionRecord[]>
  saveSubscription(record: SubscriptionRecord): Promise<void>
  forgetSubscription(id: string): Promise<void>
  /**
   * Stores bytes that could not be parsed, for inspection. Above the limit the oldest are removed.
   */
  quarantine(entry: { at: number; source: string; reason: string; bytes: string }): Promise<void>
}

/** What a person asks for. */
export interface Operator {
  /** Makes dead deliveries (by `id` also a delivered one) pending again, in several transactions; `dryRun`: counts them. */
  retry(selection: RetrySelection): Promise<{ count: number }>
  /**
   * Sends past facts that one handler selects to it again; in several transactions, the oldest
   * first.
   */
  replay(handler: string, from: ReplayStart): Promise<{ count: number }>
}

export interface Batch {
  facts?: readonly Fact[]
  hints?: readonly Hint[]
  /** The stream's cursor: never moves back. */
  cursor?: string
  readings?: readonly Reading[]
  /**
   * Calls that a read found, committed before the rest of the read, so that a tool need not wait
   * for it. One that is added as `running` is claimed by its caller.
   */
  newCalls?: readonly Call[]
  /** Steps of the call ledger; facts that depend on a step are committed only with it. */
  calls?: readonly (CallStep & { facts?: readonly Fact[] })[]
  /**
   * Returns the outcomes of attempts. Called when the transaction begins, and again where it is tried again: what became
   * known while it waited is part of it.
   */
  acks?: () => readonly Ack[]
  checkpoints?: Readonly<Record<string, string>>
  /**
   * With a scope: facts of foreign sessions are omitted, and frames of unknown sessions are held
   * until their owner is known.
   */
  scoped?: boolean
  /** Written before the rest of the batch. Held frames become facts, or are dropped. */
  owners?: readonly OwnerNote[]
}

export interface Committed {
  /** The facts that were new, in order. */
  facts: StoredFact[]
  lanes: LaneExtension[]
  /** Reads that are older than the stored state, or whose lease has ended: nothing of them was written. */
  stale: string[]
  /** Calls whose step was refused: the table has no such arrow, or the lease has ended. */
  refused: string[]
  /** Channels that reported a known fact. */
  sightings: { channel: Channel; type: string; at: number; factAt: number }[]
  /** True when hints were added. */
  hinted: boolean
  /** The calls that were new. */
  newCalls: AddedCall[]
  /** All that are held now; absent: the commit changed nothing of them. */
  held?: HeldFrames
  /** Frames that were dropped because their session was deleted before its owner was known. */
  unattributed?: number
}

export interface HintClaim {
  lease: Lease
  /** Changes with every hint: a read clears the hint only if no new one came meanwhile. */
  generation: number
}

/** What the queue needs of a hint that it gave out. */
export interface ClaimedHint {
  sessionId: string | null
  claim: HintClaim
}

export interface HintedSession extends ClaimedHint {
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
  /** It has nothing under way: idle or failed, no open action, every turn settled. */
  atRest: boolean
}

export interface KnownSession extends SessionGlance {
  revision: number
  session: Session
  /**
   * Service clock: settled turns created up to then are older than our first start and make no
   * facts.
   */
  baseline: number
  /** Turns that are not settled, and the newest settled one. */
  turns: KnownTurn[]
  /** Actions that are not resolved. */
  actions: Action[]
}

export interface KnownTurn {
  turn: Turn
  /** False while only its turn.ended frame reported it: then `turn` is a placeholder. */
  read: boolean
  final: boolean
  settled: boolean
  /** Our wall clock: when the stream's turn.ended came. */
  endedFrameAt: number | null
  /** Milliseconds since we first read it as final. */
  finalFor: number | null
  /** The final fact is out. */
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
   * `claim`: of the hint that caused the read, and that is cleared unless its generation moved; null: none did.
   * `lookAfter` (milliseconds from now) makes it due again.
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
