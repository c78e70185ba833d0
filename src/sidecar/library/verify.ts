import { isObject, type JsonObject } from '../../std/json.ts'
import { callbackKey, verifyCallbackSignature } from '../../std/signature.ts'
import type { Event, ToolCallRequest } from './events.ts'

/** A request that is not from the sidecar, or too old. Answer it with 401. */
export class CallbackRejected extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'CallbackRejected'
  }
}

export interface VerifyOptions {
  /** As from Node or a web framework; names in any case. */
  headers: Record<string, string | string[] | undefined> | Headers
  /** The raw body: bytes or text. */
  body: string | Uint8Array
  /** `whsec_…`; several while rotating. */
  secrets: readonly string[]
  /** Seconds that the timestamp may be off. Default 300. */
  tolerance?: number
  /** Milliseconds since the epoch, for tests. */
  now?: number
}

/**
 * Checks a callback (Standard Webhooks) and returns its event, in either `format`.
 * @throws {CallbackRejected} also for a batch; use `verifyCallbacks` for batches.
 */
export function verifyCallback(options: VerifyOptions): Event {
  const body = verify(options)
  if (Array.isArray(body)) throw new CallbackRejected('the body is a batch: verifyCallbacks reads it')
  return eventOf(body)
}

/**
 * The same for a handler with `batch.max` above 1, whose callbacks carry several events. A body with a single event
 * gives a list of one.
 * @throws {CallbackRejected}
 */
export function verifyCallbacks(options: VerifyOptions): Event[] {
  const body = verify(options)
  return Array.isArray(body) ? body.map(eventOf) : [eventOf(body)]
}

/**
 * Checks the request to a tool.
 * @throws {CallbackRejected}
 */
export function verifyToolCall(options: VerifyOptions): ToolCallRequest {
  const call = verify(options)
  if (!isObject(call) || call.type !== 'tool.call' || typeof call.call_id !== 'string')
    throw new CallbackRejected('the body is not a tool call')
  // The signature shows that the sidecar wrote the body, and it writes no other shape.
  return call as unknown as ToolCallRequest
}

/** Parses a verified body. */
function verify(options: VerifyOptions): unknown {
  const { body, secrets, tolerance = 300, now = Date.now() } = options
  const id = header(options.headers, 'webhook-id')
  const timestamp = header(options.headers, 'webhook-timestamp')
  const signature = header(options.headers, 'webhook-signature')
  if (id === null || timestamp === null || signature === null)
    throw new CallbackRejected('a webhook header is missing')
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > tolerance) {
    throw new CallbackRejected('the timestamp is too far from now')
  }
  if (!verifyCallbackSignature(secrets.map(callbackKey), id, timestamp, body, signature)) {
    throw new CallbackRejected('no signature fits')
  }
  try {
    return JSON.parse(typeof body === 'string' ? body : Buffer.from(body).toString('utf8'))
  } catch {
    throw new CallbackRejected('the body is not JSON')
  }
}

function eventOf(value: unknown): Event {
  const event = isObject(value) && value.specversion === '1.0' ? fromCloudEvent(value) : value
  if (!isObject(event) || typeof event.type !== 'string' || typeof event.id !== 'string') {
    throw new CallbackRejected('the body is not an event')
  }
  // The signature shows that the sidecar wrote the body, and it writes no other shape.
  return event as unknown as Event
}

/** The fields of an event that have no CloudEvents attribute are in `data`. */
function fromCloudEvent({ type, time, id, data }: JsonObject): JsonObject {
  const rest = isObject(data) ? data : {}
  return { type, timestamp: time, id, ...rest }
}

function header(headers: VerifyOptions['headers'], name: string): string | null {
  if (headers instanceof Headers) return headers.get(name)
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return Array.isArray(value) ? (value[0] ?? null) : (value ?? null)
  }
  return null
}
