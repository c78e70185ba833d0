import { Client } from 'undici'
import type { Dispatcher } from 'undici'
import { NetworkFault } from '../std/errors.ts'
import type { HttpStream, HttpStreamRequest } from '../std/ports.ts'
import { networkFault, type Stage } from './fault.ts'

/**
 * Opens one GET with an endless answer. It has a connection of its own, which closes when the body
 * ends, when the reader stops reading, or with the signal. Back-pressure reaches the peer: unread
 * data is not received.
 * @throws {NetworkFault}
 */
export async function openStream(
  request: HttpStreamRequest,
  options: Client.Options,
  open: Set<Client>,
): Promise<HttpStream> {
  const { origin, pathname, search } = address(request.url)
  const client = new Client(origin, options)
  open.add(client)
  let cut: NetworkFault | null = null
  // A stream that breaks in its body is a reset connection, not an unreadable answer.
  let stage: Stage = 'connecting'
  client.once('connect', () => (stage = 'sent'))
  const close = (fault: NetworkFault | null): void => {
    cut ??= fault
    clearTimeout(timer)
    request.signal.removeEventListener('abort', onAbort)
    if (open.delete(client)) void client.destroy(fault)
  }
  const onAbort = (): void => close(new NetworkFault('aborted', 'aborted by the caller'))
  const timer = setTimeout(
    () => close(new NetworkFault('timeout', 'no answer in time')),
    Math.min(request.timeout, 2 ** 31 - 1),
  )
  request.signal.addEventListener('abort', onAbort, { once: true })
  if (request.signal.aborted) onAbort()
  try {
    const { headers } = request
    const reply = await client.request({ method: 'GET', path: pathname + search, headers })
    clearTimeout(timer)
    const fault = (error: unknown): NetworkFault => cut ?? networkFault(error, stage)
    return {
      status: reply.statusCode,
      headers: singleValued(reply.headers),
      chunks: { [Symbol.asyncIterator]: () => reader(reply.body, close, fault) },
    }
  } catch (error) {
    const fault = cut ?? networkFault(error, stage)
    close(fault)
    throw fault
  }
}

/**
 * Not a generator: a generator that never started skips its `finally`, and the connection would
 * stay open.
 */
function reader(
  body: Dispatcher.ResponseData['body'],
  close: (fault: NetworkFault | null) => void,
  faultOf: (error: unknown) => NetworkFault,
): AsyncIterator<Uint8Array, undefined> {
  const inner: AsyncIterator<unknown> = body[Symbol.asyncIterator]()
  const done = { done: true, value: undefined } as const
  return {
    async next() {
      try {
        const result = await inner.next()
        if (result.done !== true && result.value instanceof Uint8Array)
          return { done: false, value: result.value }
        close(null)
        return done
      } catch (error) {
        const fault = faultOf(error)
        close(fault)
        throw fault
      }
    },
    async return() {
      close(null)
      return done
    },
  }
}

function address(url: string): URL {
  try {
    return new URL(url)
  } catch (error) {
    throw networkFault(error, 'connecting')
  }
}

/**
 * undici has an array for a repeated header; converted in place, since nearly every answer has
 * none.
 */
export function singleValued(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  for (const name in headers) {
    const value = headers[name]
    if (Array.isArray(value)) headers[name] = value.join(', ')
  }
  return headers as Record<string, string>
}
