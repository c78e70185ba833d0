import type { Call } from './call.ts'
import type { Attempt } from './delivery.ts'
import type { Channel, StoredFact } from './fact.ts'

/**
 * What the parts report to metrics, `dev` and the library's user. Called after the event, never awaited; an observer
 * must not throw. Durations in seconds, times in milliseconds on our wall clock.
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
  /** A frame of the stream cannot be parsed, and is in quarantine. */
  quarantined(): void
  transient(event: TransientEvent): void
  /** Frames were dropped: their session was deleted before its owner was known. */
  framesUnattributed(count: number): void
  /** All events of the stream up to this cursor are durable. */
  streamCommitted(cursor: string): void
  webhook(outcome: WebhookOutcome): void
  /** Whether the service sends us webhooks; `problem`: the reason if not. */
  subscription(active: boolean, problem?: string): void

  /** A new fact is durable. `lag`: seconds since the event, if the resource has the time. */
  fact(fact: StoredFact, lag: number | null): void
  /** Another channel reported a known fact. */
  sighting(event: { channel: Channel; type: string; lag: number }): void
  missed(event: { channel: Channel; type: string }): void

  callback(event: CallbackReport): void
  handler(name: string, state: HandlerState): void
  /** A transient event was not sent to `handler`, which has no free slot. */
  transientDropped(handler: string): void

  toolRun(event: ToolRunReport): void
  /** The ledger of a call is closed. `seconds`: from the action's creation until now, on the service's clock. */
  call(event: CallReport): void
  /** A session waits for a function that no configured tool answers; reported once for each call. */
  callWithoutTool(event: CallWithoutTool): void

  commit(seconds: number): void
  /** A write was refused. */
  storeRefused(reason: StoreRefusal): void
  /** A fact is damaged in the store: its delivery to `handler` became a dead letter without an attempt. */
  deadLettered(handler: string): void

  /** What this process owns of the store: shards of the sessions, and whether it leads. */
  shards(owned: number, leads: boolean): void
  /** It renewed its leases, or could not; `fenced`: another process took over. */
  leaseRenewed(outcome: RenewalOutcome): void

  /** The number of connected readers of the relay. */
  relayReaders(count: number): void
  /** Frames were sent to readers of the relay, counted for each reader. */
  relayFrames(source: 'live' | 'replay', count: number): void
  relayEnded(outcome: RelayOutcome): void
}

/**
 * Why a write was refused: a full or failing disk, another program that locks the store, damage, another process that
 * took over the store, deleted or replaced files, or another reason.
 */
export const STORE_REFUSALS = ['full', 'unreachable', 'busy', 'damaged', 'fenced', 'lost', 'other'] as const
export type StoreRefusal = (typeof STORE_REFUSALS)[number]

export const RENEWALS = ['renewed', 'failed', 'fenced'] as const
export type RenewalOutcome = (typeof RENEWALS)[number]

/**
 * How a reader of the relay ended: it left, was too slow, reached the limit of a replay, could not read the log, found
 * no free slot, or we stopped.
 */
export type RelayOutcome = 'left' | 'slow' | 'replay_limit' | 'failed' | 'refused' | 'stopped'

/** The result: an output, a later answer, rejected arguments, or a failure. */
export type ToolRunOutcome = 'output' | 'deferred' | 'rejected' | 'failed'

export interface ToolRunReport {
  /** The name of the function, also if the tool `*` answered it. */
  tool: string
  callId: string
  sessionId: string
  outcome: ToolRunOutcome
  seconds: number
  /** From 1. */
  attempt: number
  /** Status of an HTTP answer without an output, if there was one. */
  status: number | null
  /** The reason, if there is no output. */
  error: string | null
}

export interface CallReport {
  tool: string
  callId: string
  sessionId: string
  outcome: string
  seconds: number | null
  /** The outcome. */
  call: Call
}

export interface CallWithoutTool {
  /** Unchanged from the service: possibly hostile, and of any length. */
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
  /** The same in all processes; no other event has it. */
  id: string
  type: string
  sessionId: string | null
  /** The frame's data, JSON text of an object. */
  body: string
  at: number
  /** The highest seq that came before it; null: none did. */
  after: string | null
}

export const WEBHOOK_OUTCOMES = [
  'accepted',
  'duplicate',
  'forged',
  'stale',
  'unreadable',
  'too_large',
  'busy',
  'store_failed',
] as const

export type WebhookOutcome = (typeof WEBHOOK_OUTCOMES)[number]

export type HandlerState = 'up' | 'down' | 'paused'

export type CallbackOutcome = 'delivered' | 'retry' | 'dead' | 'unreachable' | 'paused'

export interface CallbackReport {
  handler: string
  fact: Pick<StoredFact, 'id' | 'type' | 'sessionId' | 'pos'>
  outcome: CallbackOutcome
  attempt: Attempt
  /** From 1. */
  number: number
  /** With `retry`: milliseconds until the next attempt, else null. */
  wait: number | null
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
  'shards',
  'leaseRenewed',
  'relayReaders',
  'relayFrames',
  'relayEnded',
]

/** Passes every report to each of `observers`. An observer has only the methods that it needs. */
export function fanOut(observers: readonly Partial<Observer>[]): Observer {
  const entries = METHODS.map((method) => {
    const listeners = observers.flatMap((observer) => {
      const listener = observer[method] as ((...args: unknown[]) => void) | undefined
      return listener === undefined ? [] : [listener.bind(observer)]
    })
    const [only] = listeners
    if (only !== undefined && listeners.length === 1) return [method, only]
    // No array of arguments: this runs for every callback.
    const all = (first: unknown, second: unknown): void => {
      for (const listener of listeners) listener(first, second)
    }
    return [method, all]
  })
  return Object.fromEntries(entries) as Observer
}

/** `observer`, protected: an error that it throws is logged once for each method, and has no other effect. */
export function guarded(
  observer: Partial<Observer>,
  logThrottled: (method: string, error: unknown) => void,
): Partial<Observer> {
  const reported = new Set<string>()
  const entries = METHODS.flatMap((method) => {
    const listener = observer[method] as ((...args: unknown[]) => unknown) | undefined
    if (listener === undefined) return []
    const failed = (error: unknown): void => {
      if (!reported.has(method)) logThrottled(method, error)
      reported.add(method)
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
