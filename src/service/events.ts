import { NetworkFault, ServiceError } from '../core/errors.ts'
import type { Clock, Http, HttpStream } from '../core/ports.ts'
import type { Authorization } from './authorization.ts'
import { exhausted } from './budget.ts'
import type { Budget } from './budget.ts'
import { unanswered } from './classify.ts'
import { stopped } from './requester.ts'
import type { Requester } from './requester.ts'

export interface StreamOptions {
  baseUrl: string
  http: Http
  clock: Clock
  authorization: Authorization
  budget: Budget
  requester: Requester
  /** Milliseconds for the answer's head. */
  timeout: number
}

/** The ceiling of concurrent streams is no rate bucket, though it refuses with the same code. */
const STREAMS = 'streams'
const OPERATION = 'openStream'
/** Bytes of a refusal that are read. */
const REFUSAL_MAX = 64 * 1024

/**
 * Opens an event stream at `path` (interface.md, Event streams). It is not tried again here: whoever reads the stream
 * owns its reconnecting.
 * @throws {ServiceError}
 */
export async function openEvents(
  options: StreamOptions,
  path: string,
  cursor: string | null,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const { baseUrl, http, clock, authorization, budget, requester, timeout } = options
  const token = authorization.token()
  for (const bucket of [STREAMS, budget.bucketOf(OPERATION, 'reads')]) {
    const wait = budget.wait(bucket)
    if (wait > 0) throw exhausted(bucket, wait)
  }
  const given = new AbortController()
  const sent = clock.now()
  const started = clock.steady()
  let stream: HttpStream
  try {
    stream = await http.open({
      url: baseUrl + path,
      headers: {
        accept: 'text/event-stream',
        authorization: `Bearer ${token}`,
        'user-agent': 'agent-session-sidecar',
        ...(cursor === null ? {} : { 'last-event-id': cursor }),
      },
      timeout,
      signal: AbortSignal.any([signal, given.signal, requester.stopped]),
    })
  } catch (error) {
    requester.note(OPERATION, null, sent, started)
    if (!(error instanceof NetworkFault)) throw error
    throw requester.stopped.aborted ? stopped() : unanswered(error)
  }
  requester.note(OPERATION, stream, sent, started)
  const { status, headers } = stream
  if (status === 200 && /^text\/event-stream\b/i.test(headers['content-type'] ?? '')) return stream.chunks
  // What is no stream has `timeout` to say why.
  const timer = clock.after(timeout, () => given.abort())
  const body = await textOf(stream)
  timer.cancel()
  if (status >= 300) throw requester.refusal(OPERATION, { status, headers, body }, token, STREAMS)
  const type = headers['content-type'] ?? 'no content type'
  throw new ServiceError({
    code: 'malformed_answer',
    status,
    message: `the event stream came as ${status} ${type.slice(0, 100)}`,
  })
}

/** The start of a body, as far as it came. */
async function textOf(stream: HttpStream): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of stream.chunks) {
      chunks.push(chunk)
      size += chunk.length
      if (size >= REFUSAL_MAX) break
    }
  } catch (error) {
    // The status alone tells enough.
    if (!(error instanceof NetworkFault)) throw error
  }
  return Buffer.concat(chunks).toString()
}
