import { ByteBuffer } from '../../std/byte-buffer.ts'
import { NetworkFault } from '../../std/errors.ts'
import type { Clock, Http, HttpStream } from '../../std/ports.ts'
import type { Authorization } from './authorization.ts'
import { unanswered } from './classify.ts'
import { ended, stopped } from './requester.ts'
import type { Requester } from './requester.ts'

export interface StreamParts {
  baseUrl: string
  http: Http
  clock: Clock
  authorization: Authorization
  requester: Requester
  /** Milliseconds for the answer's head. */
  timeout: number
}

export interface StreamCall {
  operation: string
  /** Below the base address, filled in, with its query. */
  path: string
  headers: Record<string, string>
  /** Ends the body, too. */
  signal: AbortSignal
  /** Closed by `rate_limit_exceeded`, where it is no rate bucket that was used up. */
  bucket?: string
}

/** Bytes of a refusal that are read. */
const REFUSAL_MAX = 64 * 1024

/**
 * Opens a GET whose body is read as it comes. It is sent once.
 * @throws {ServiceError} unless the answer is a 2xx.
 */
export async function openBody(parts: StreamParts, call: StreamCall): Promise<HttpStream> {
  const { baseUrl, http, clock, authorization, requester, timeout } = parts
  const { operation, path, headers, signal, bucket } = call
  const token = authorization.token()
  const given = new AbortController()
  const started = clock.steady()
  let stream: HttpStream
  try {
    stream = await http.open({
      url: baseUrl + path,
      headers: { ...headers, authorization: `Bearer ${token}`, 'user-agent': 'agent-session-sidecar' },
      timeout,
      signal: AbortSignal.any([signal, given.signal, requester.stopped]),
    })
  } catch (error) {
    requester.note(operation, null, started)
    if (!(error instanceof NetworkFault)) throw error
    if (requester.stopped.aborted) throw stopped()
    throw signal.aborted ? ended(signal) : unanswered(error)
  }
  requester.note(operation, stream, started)
  if (stream.status < 300) return stream
  // A refusal has `timeout` to say why.
  const timer = clock.after(timeout, () => given.abort())
  const body = await textOf(stream)
  timer.cancel()
  throw requester.refusal(operation, { status: stream.status, headers: stream.headers, body }, token, bucket)
}

/** The start of a body, as far as it came. */
async function textOf(stream: HttpStream): Promise<string> {
  const body = new ByteBuffer(REFUSAL_MAX)
  try {
    for await (const chunk of stream.chunks) {
      body.append(chunk.subarray(0, REFUSAL_MAX - body.length))
      if (body.length === REFUSAL_MAX) break
    }
  } catch (error) {
    // The status is enough.
    if (!(error instanceof NetworkFault)) throw error
  }
  return body.bytes().toString()
}
