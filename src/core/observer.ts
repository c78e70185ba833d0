import type { Call } from './call.ts'
import type { Attempt } from './delivery.ts'
import type { Channel, StoredFact } from './fact.ts'

/**
 * What the parts tell about themselves, for metrics, `dev` and the library's user. Called after the fact, never awaited;
 * an observer must not throw. Durations in seconds, times in milliseconds on our wall clock.
 */
export interface Observer {
  /** A request to the service was answered, or failed (`statusClass` `none`). */
  request(event: { operation: string; statusClass: string; seconds: number }): void
  requestRetried(code: string): void
  budget(bucket: string, remaining: number): void

  channel(channel: Channel, status: ChannelStatus): void
  streamReconnect(reason: string): void
  /** `seq` null: a transient frame. */
  frame(event: { type: string; seq: string | null; at: number }): void
  /** A frame of the stream cannot be read, and is in quarantine. */
  quarantined(): void
  transient(event: TransientEvent): void
  /** Frames were dropped: their session was gone before it was known whose it was. */
  framesUnattributed(count: number): void
  /** Everything of the stream up to here is durable. */
  streamCommitted(cursor: string): void
  webhook(outcome: WebhookOutcome): void
  /** Whether the service sends us webhooks; `problem`: why it does not. */
  subscription(active: boolean, problem?: string): void

  /** A new fact is durable. `lag`: seconds since it happened, where the resource tells. */
  fact(fact: StoredFact, lag: number | null): void
  /** A further channel told of a fact that we had. */
  sighting(event: { channel: Channel; type: string; lag: number }): void
  missed(event: { channel: Channel; type: string }): void

  callback(event: CallbackReport): void
  handler(name: string, state: HandlerState): void
  /** A transient event was not sent to `handler`, which has more to do than it can. */
  transientDropped(handler: string): void

  toolRun(event: ToolRunReport): void
  /** A call's ledger is closed. `seconds`: from the action's creation to now, on the service's clock. */
  call(event: CallReport): void
  /** A session waits for a function that no configured tool is; once for each call. */
  callWithoutTool(event: CallWithoutTool): void

  commit(seconds: number): void
  /** A write was not done. */
  storeRefused(reason: StoreRefusal): void
  /** A fact is damaged in the store: its delivery to `handler` became a dead letter without a call. */
  deadLettered(handler: string): void

  /** How many read the relay now. */
  relayReaders(count: number): void
  /** Frames were handed to readers of the relay, each reader's counted. */
  relayFrames(source: 'live' | 'replay', count: number): void
  relayEnded(outcome: RelayOutcome): void
}

/**
 * Why: no room or a failing disk, another program that holds the store, damage, another process that took the store over,
 * files that were deleted or replaced, or something else.
 */
export const STORE_REFUSALS = ['full', 'busy', 'damaged', 'fenced', 'lost', 'other'] as const
export type StoreRefusal = (typeof STORE_REFUSALS)[number]

/**
 * How a reader of the relay ended: it left, was too slow, had a replay's most, found the log unreadable, found no place, or
 * we stopped.
 */
export type RelayOutcome = 'left' | 'slow' | 'replay_limit' | 'failed' | 'refused' | 'stopped'

/** What it said: the output, that it answers later, that the arguments are wrong, or nothing that could be used. */
export type ToolRunOutcome = 'output' | 'deferred' | 'rejected' | 'failed'

export interface ToolRunReport {
  tool: string
  callId: string
  outcome: ToolRunOutcome
  seconds: number
  /** From 1. */
  attempt: number
}

export interface CallReport {
  tool: string
  callId: string
  sessionId: string
  outcome: string
  seconds: number | null
  /** As it was closed. */
  call: Call
}

export interface CallWithoutTool {
  /** As the service gave it: hostile, and of any length. */
  name: string
  callId: string
  sessionId: string | null
}

export interface ChannelStatus {
  state: 'disabled' | 'connecting' | 'live' | 'waiting' | 'stopped'
  /** Milliseconds. */
  since: number
  lastError: string | null
  lastEventAt: number | null
  /** Stream: the last committed seq. */
  lastSeq: string | null
}

/** An event of the stream that is not stored. */
export interface TransientEvent {
  type: string
  sessionId: string | null
  /** The frame's data, JSON text of an object. */
  body: string
  at: number
  /** The highest seq that came before it; null: none did. */
  after: string | null
}

export type WebhookOutcome =
  | 'accepted'
  | 'duplicate'
  | 'forged'
  | 'stale'
  | 'unreadable'
  | 'too_large'
  | 'busy'
  | 'store_failed'

export type HandlerState = 'up' | 'down' | 'paused'

export type CallbackOutcome = 'delivered' | 'retry' | 'dead' | 'unreachable' | 'paused'

export interface CallbackReport {
  handler: string
  fact: Pick<StoredFact, 'id' | 'type' | 'sessionId' | 'pos'>
  outcome: CallbackOutcome
  attempt: Attempt
  /** From 1. */
  number: number
}

const METHODS: readonly (keyof Observer)[] = [
  'request',
  'requestRetried',
  'budget',
  'channel',
  'streamReconnect',
  'frame',
  'quarantined',
  'transient',
  'framesUnattributed',
  'streamCommitted',
  'webhook',
  'subscription',
  'fact',
  'sighting',
  'missed',
  'callback',
  'handler',
  'transientDropped',
  'toolRun',
  'call',
  'callWithoutTool',
  'commit',
  'storeRefused',
  'deadLettered',
  'relayReaders',
  'relayFrames',
  'relayEnded',
]

/** Passes every event on to each of `observers`; an observer names only what it wants. */
export function fanOut(observers: readonly Partial<Observer>[]): Observer {
  const entries = METHODS.map((method) => {
    const listeners = observers.flatMap((observer) => {
      const listener = observer[method] as ((...args: unknown[]) => void) | undefined
      return listener === undefined ? [] : [listener.bind(observer)]
    })
    const [only] = listeners
    if (only !== undefined && listeners.length === 1) return [method, only]
    // Each callback comes through here: no array is made of its arguments.
    const all = (first: unknown, second: unknown): void => {
      for (const listener of listeners) listener(first, second)
    }
    return [method, all]
  })
  return Object.fromEntries(entries) as Observer
}

/** `observer` as one that cannot stop us: what it throws is told once for each method, and otherwise left. */
export function guarded(
  observer: Partial<Observer>,
  logThrottled: (method: string, error: unknown) => void,
): Partial<Observer> {
  const told = new Set<string>()
  const entries = METHODS.flatMap((method) => {
    const listener = observer[method] as ((...args: unknown[]) => unknown) | undefined
    if (listener === undefined) return []
    const failed = (error: unknown): void => {
      if (!told.has(method)) logThrottled(method, error)
      told.add(method)
    }
    const listen = (...args: unknown[]): void => {
      try {
        const result = listener.apply(observer, args)
        if (result instanceof Promise) result.catch(failed)
      } catch (error) {
        failed(error)
      }
    }
    return [[method, listen] as const]
  })
  return Object.fromEntries(entries)
}
