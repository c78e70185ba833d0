import { ServiceError } from '../../core/errors.ts'
import type { Requester } from './requester.ts'

/**
 * A bucket of our own, not of the service, which refuses too many concurrent streams with the code of a rate limit.
 */
const STREAMS = 'streams'
const OPERATION = 'openStream'

/**
 * Opens an event stream at `path` (rules EVT-01, EVT-04). One attempt: the reader of the stream decides when to
 * reconnect.
 * @throws {ServiceError}
 */
export async function openEvents(
  requester: Requester,
  path: string,
  cursor: string | null,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const { authorization, budget } = requester
  // A rejected token is reported before a used-up budget.
  authorization.token()
  for (const bucket of [STREAMS, budget.bucketOf(OPERATION, 'reads')]) {
    if (budget.wait(bucket) > 0) throw budget.refusal(bucket)
  }
  const { status, headers, chunks } = await requester.open({
    operation: OPERATION,
    path,
    headers: { accept: 'text/event-stream', ...(cursor === null ? {} : { 'last-event-id': cursor }) },
    signal,
    bucket: STREAMS,
  })
  const type = headers['content-type'] ?? 'no content type'
  if (status === 200 && /^text\/event-stream\b/i.test(type)) return chunks
  await chunks[Symbol.asyncIterator]().return?.()
  throw new ServiceError({
    code: 'malformed_answer',
    status,
    message: `the event stream came as ${status} ${type.slice(0, 100)}`,
  })
}
