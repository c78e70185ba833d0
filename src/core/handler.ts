import type { Secrets } from '../std/signature.ts'
import type { HandlerState } from './observer.ts'

/** How a handler is called. Durations in milliseconds. */
export interface HandlerSpec {
  name: string
  target: HandlerTarget
  events: string[]
  format: 'standard' | 'cloudevents'
  /** Per session: one at a time, in order. */
  ordered: boolean
  concurrency: number
  batch: { max: number; wait: number }
  timeout: number
  retry: RetrySpec
}

export type HandlerTarget =
  /** `secrets` sign every callback, the newest first; none: unsigned. */
  { kind: 'http'; url: string; secrets: Secrets } | { kind: 'module'; handle: ModuleHandler }

export interface RetrySpec {
  attempts: number
  base: number
  max: number
}

export interface HandlerStatus {
  name: string
  state: HandlerState
  /** Milliseconds, our wall clock. */
  since: number
  /** A message for people, without secrets. */
  lastError: string | null
}

/** The outcome of a test fact at a handler. */
export interface Trial {
  outcome: 'delivered' | 'retry' | 'dead' | 'unreachable' | 'gone' | 'aborted'
  /** The status of its answer; null when there was none. */
  status: number | null
  error: string | null
  /** The beginning of its answer, if the attempt failed. */
  answer: string | null
  /** Milliseconds. */
  ms: number
}

/** An in-process handler. After a thrown error the event is retried; after DeadLetter it is dead-lettered. */
export type ModuleHandler = (event: CallbackEvent, context: HandlerContext) => unknown

/** A callback as the handler gets it (src/sidecar/README.md, Callbacks). */
export interface CallbackEvent {
  type: string
  /** ISO 8601, when the sidecar stored the fact. */
  timestamp: string
  id: string
  session_id: string | null
  data: Record<string, unknown>
  delivery: { attempt: number; handler: string; test?: true }
  /** When each channel first reported it, milliseconds on the sidecar's clock. */
  seen: Record<string, number>
}

export interface HandlerContext {
  /** From 1. */
  attempt: number
  /** Aborted at the handler's timeout and when the sidecar stops. */
  signal: AbortSignal
  log: HandlerLog
}

export interface HandlerLog {
  debug(message: string, details?: object): void
  info(message: string, details?: object): void
  warn(message: string, details?: object): void
  error(message: string, details?: object): void
}
