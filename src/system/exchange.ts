import type { Client, Dispatcher } from 'undici'
import { ByteBuffer } from '../std/byte-buffer.ts'
import { NetworkFault } from '../std/errors.ts'
import type { HttpAttempt, HttpReply, HttpRequest } from '../std/ports.ts'
import type { Connections, Acquirer } from './connections.ts'
import { networkFault, type Stage } from './fault.ts'

/** The connection closes after the answer. */
const RESET = { reset: true }
/** The maximum of Node's timers, milliseconds. */
const LONGEST_TIMEOUT = 2 ** 31 - 1

/**
 * One request and its answer. It uses undici's dispatch directly, because a stream and a promise
 * for each body cost as much as the exchange itself. It has its own timer, because undici's are too
 * coarse for a timeout of 200 ms.
 */
export class Exchange implements HttpAttempt, Acquirer, Dispatcher.DispatchHandler {
  readonly #request: HttpRequest
  readonly #path: string
  readonly #connections: Connections
  readonly #settled: (outcome: HttpReply | NetworkFault) => void
  #timer: NodeJS.Timeout | undefined
  #client: Client | null = null
  #controller: Dispatcher.DispatchController | null = null
  #stage: Stage = 'connecting'
  #status = 0
  #headers: Record<string, string> = {}
  readonly #body: ByteBuffer
  #ended = false

  constructor(
    request: HttpRequest,
    path: string,
    connections: Connections,
    settled: (outcome: HttpReply | NetworkFault) => void,
  ) {
    this.#request = request
    this.#body = new ByteBuffer(request.maxBody)
    this.#path = path
    this.#connections = connections
    this.#settled = settled
  }

  begin(): void {
    const { timeout } = this.#request
    this.#timer = setTimeout(giveUp, Math.min(timeout, LONGEST_TIMEOUT), this)
    try {
      this.#connections.wait(this)
    } catch (error) {
      queueMicrotask(() => this.#fail(error))
    }
  }

  abort(): void {
    this.abandon('aborted', 'aborted by the caller')
  }

  #fail(error: unknown): void {
    if (this.#ended) return
    this.#end()
    this.#settled(networkFault(error, this.#stage))
  }

  acquired(client: Client): void {
    this.#client = client
    const { method, headers, body, pool } = this.#request
    const reset = pool?.fresh === true ? RESET : undefined
    client.dispatch({ path: this.#path, method, headers, body: body ?? null, ...reset }, this)
  }

  /**
   * Settles with a fault now, in any state of the exchange, and frees the connection or the slot in
   * the queue.
   */
  abandon(kind: 'timeout' | 'aborted', message: string): void {
    if (this.#ended) return
    const connecting = this.#client !== null && this.#controller === null
    const fault =
      kind === 'timeout' && connecting
        ? new NetworkFault('unreachable', 'no connection in time')
        : new NetworkFault(kind, message)
    this.#end()
    if (this.#client === null) this.#connections.leave(this)
    else if (this.#controller === null) this.#connections.drop(this.#client)
    else this.#controller.abort(fault)
    this.#settled(fault)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#stage = 'sent'
    if (this.#ended) controller.abort(new NetworkFault('aborted', 'given up before it was sent'))
  }

  /** The first byte of the answer came. undici calls it, but its types do not list it. */
  onResponseStarted(): void {
    this.#stage = 'answering'
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    this.#status = status
    this.#headers = singleValued(headers)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#ended) return
    const room = this.#request.maxBody - this.#body.length
    if (chunk.length <= room) return this.#body.append(chunk)
    this.#body.append(chunk.subarray(0, room))
    this.#finish(true)
    // Only closing the connection stops the peer from sending the rest.
    controller.abort(new NetworkFault('aborted', 'the answer is longer than wanted'))
  }

  onResponseEnd(): void {
    this.#release()
    if (!this.#ended) this.#finish(false)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    // undici is ending this connection's requests and accepts no other before that.
    queueMicrotask(() => this.#release())
    this.#fail(error)
  }

  #finish(truncated: boolean): void {
    this.#end()
    const body = this.#body.bytes().toString()
    this.#settled({ status: this.#status, headers: this.#headers, body, truncated })
  }

  #end(): void {
    this.#ended = true
    clearTimeout(this.#timer)
  }

  #release(): void {
    if (this.#client === null) return
    this.#connections.release(this.#client)
    this.#client = null
  }
}

function giveUp(exchange: Exchange): void {
  exchange.abandon('timeout', 'no complete answer in time')
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
