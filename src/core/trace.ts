import { hash } from 'node:crypto'
import { isObject, stringOf } from '../std/json.ts'
import type { Random } from '../std/ports.ts'
import type { StoredFact } from './fact.ts'
import type { SessionSummary } from './resource.ts'

/** The origin of a session's trace: the `traceparent` of its metadata, else one made from `key`. */
export interface TraceSource {
  given: string | undefined
  /** The session's id, or the id of a fact that names no session. All work with one key is one trace. */
  key: string
}

export type SpanName = 'reading' | 'callback' | 'tool' | 'answer'

export type Attributes = Record<string, string | number>

/** One piece of work in a trace. */
export interface Span {
  /** W3C `traceparent` for our requests: the spans of the receiver belong below this span. */
  readonly traceparent: string
  /** Runs `work` as a part of it. */
  run<T>(work: () => T): T
  /** `fault`: the error, null on success. */
  end(fault: string | null): void
}

export interface Tracer {
  /**
   * `since`: wall clock milliseconds, if the work began earlier. `attributes` is called only if a span is recorded.
   */
  start(name: SpanName, source: TraceSource, attributes: () => Attributes, since?: number): Span
}

/** A W3C trace context, in hex. */
export interface TraceContext {
  traceId: string
  spanId: string
  flags: string
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/
const NOTHING = /^0+$/

/** The parent of our spans: the context of the metadata, else one derived from the key. */
export function traceContext({ given, key }: TraceSource): TraceContext {
  const [, traceId = '0', spanId = '0', flags = '01'] =
    given === undefined ? [] : (TRACEPARENT.exec(given) ?? [])
  if (!NOTHING.test(traceId) && !NOTHING.test(spanId)) return { traceId, spanId, flags }
  return madeFrom(key)
}

export function traceparentOf({ traceId, spanId, flags }: TraceContext): string {
  return `00-${traceId}-${spanId}-${flags}`
}

/** The trace id of a log line. */
export function traceIdOf(source: TraceSource): string {
  return traceContext(source).traceId
}

/** Passes traces on, and records none of our own work. */
export function plainTracer(random: Random): Tracer {
  return { start: (_name, source) => new PlainSpan(source, random) }
}

class PlainSpan implements Span {
  readonly #source: TraceSource
  readonly #random: Random
  #traceparent: string | null = null

  constructor(source: TraceSource, random: Random) {
    this.#source = source
    this.#random = random
  }

  get traceparent(): string {
    if (this.#traceparent === null) {
      const { traceId, flags } = traceContext(this.#source)
      this.#traceparent = `00-${traceId}-${this.#random.hex(8)}-${flags}`
    }
    return this.#traceparent
  }

  run<T>(work: () => T): T {
    return work()
  }

  end(): void {}
}

/** Every callback needs a context; a few thousand are cached. */
const REMEMBERED = 4096
const made = new Map<string, TraceContext>()

function madeFrom(key: string): TraceContext {
  let context = made.get(key)
  if (context === undefined) {
    const digest = hash('sha256', key, 'hex')
    context = { traceId: digest.slice(0, 32), spanId: digest.slice(32, 48), flags: '01' }
    if (made.size >= REMEMBERED) made.clear()
    made.set(key, context)
  }
  return context
}

/** The trace of a delivery. A state fact contains its session; for another fact the session as last read is used. */
export function traceOf(fact: StoredFact, session: SessionSummary | null): TraceSource {
  return {
    given: session?.metadata['traceparent'] ?? carried(fact),
    key: fact.sessionId ?? fact.id,
  }
}

/** A body is parsed only if it contains the name `traceparent`. */
function carried({ family, body }: StoredFact): string | undefined {
  if (family !== 'state' || !body.includes('"traceparent"')) return undefined
  const data: unknown = JSON.parse(body)
  const session = isObject(data) ? data['session'] : null
  const metadata = isObject(session) ? session['metadata'] : null
  return (isObject(metadata) ? stringOf(metadata['traceparent']) : null) ?? undefined
}
