import { SilenceWatchdog } from '../protocol/connection.ts'
import { NetworkFault } from '../std/errors.ts'
import { ServiceError } from '../core/errors.ts'
import { unanswered } from './transport/classify.ts'
import { ended } from './transport/requester.ts'
import type { WholeName } from './discovery/whole.ts'
import type { CallOptions } from './request.ts'
import type { Request } from './call.ts'
import { link } from './signal.ts'
import { named } from './transport.ts'
import type { Transport } from './transport.ts'

export interface Download {
  /** As the service reports it, possibly `application/octet-stream` for any file. */
  contentType: string | null
  /** Bytes, if the service reports them beforehand. */
  size: number | null
  /** Read at the reader's pace. Cancelling it closes the connection. */
  body: ReadableStream<Uint8Array>
}

/**
 * Opens a download. `timeout` applies until it begins, `signal` until its end. It has a connection
 * of its own, until its body is read or cancelled.
 * @throws {ServiceError}
 */
export async function download(
  transport: Transport,
  name: WholeName,
  request: Request,
  options: CallOptions | undefined,
): Promise<Download> {
  const connection = new AbortController()
  const { headers, chunks } = await transport.within(name, options, (operation) =>
    transport.open(operation, request, connection),
  )
  const links = [link(options?.signal, connection), link(transport.stopped, connection)]
  const silence = new SilenceWatchdog(transport.clock, connection)
  const release = (): void => {
    silence.stop()
    for (const off of links) off()
  }
  const iterator = chunks[Symbol.asyncIterator]()
  const size = headers['content-length']
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const chunk = await silence.next(iterator)
          if (chunk !== null) return controller.enqueue(chunk)
          release()
          controller.close()
        } catch (error) {
          release()
          controller.error(named(name, broken(error, connection.signal)))
        }
      },
      async cancel() {
        release()
        await iterator.return?.()
      },
    },
    // Nothing is read until the reader requests it.
    { highWaterMark: 0 },
  )
  return {
    contentType: headers['content-type'] ?? null,
    size: size !== undefined && /^\d+$/.test(size) ? Number(size) : null,
    body,
  }
}

/** Why a body ended early: the caller's signal, the close of the client, or the network. */
export function broken(error: unknown, signal: AbortSignal): ServiceError {
  if (error instanceof ServiceError) return error
  if (signal.aborted && !(signal.reason instanceof NetworkFault)) return ended(signal)
  const fault = error instanceof NetworkFault ? error : new NetworkFault('other', String(error), error)
  return unanswered(fault)
}
