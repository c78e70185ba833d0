import { Client, type Dispatcher } from 'undici'
import { NetworkFault } from '../../src/std/errors.ts'
import type { HttpReply, HttpRequest } from '../../src/std/ports.ts'
import type { Stage } from '../../src/system/fault.ts'
import { connectSkippingContinue } from './interim.ts'
import { singleValued, undiciFault } from './undici-fault.ts'

/** The exchange as undici makes it, on a connection of its own. */
export function undiciExchange(request: HttpRequest): Promise<HttpReply | NetworkFault> {
  const { origin, pathname } = new URL(request.url)
  const client = new Client(origin, {
    connect: connectSkippingContinue(request.timeout),
    maxHeaderSize: 16_384,
    headersTimeout: request.timeout,
    bodyTimeout: request.timeout,
    allowH2: false,
  })
  return new Promise<HttpReply | NetworkFault>((resolve) => {
    const { method, headers, body } = request
    const handler = new Reading(request.maxBody, resolve)
    client.dispatch({ path: pathname, method, headers, body: body ?? null, reset: true }, handler)
  }).finally(() => void client.destroy())
}

class Reading implements Dispatcher.DispatchHandler {
  readonly #maxBody: number
  readonly #settled: (outcome: HttpReply | NetworkFault) => void
  #stage: Stage = 'connecting'
  #status = 0
  #headers: Record<string, string> = {}
  #body = Buffer.alloc(0)

  constructor(maxBody: number, settled: (outcome: HttpReply | NetworkFault) => void) {
    this.#maxBody = maxBody
    this.#settled = settled
  }

  onRequestStart(): void {
    this.#stage = 'sent'
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
    this.#body = Buffer.concat([this.#body, chunk])
    if (this.#body.length <= this.#maxBody) return
    this.#finish(true)
    controller.abort(new NetworkFault('aborted', 'the answer is longer than wanted'))
  }

  onResponseEnd(): void {
    this.#finish(false)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#settled(undiciFault(error, this.#stage))
  }

  #finish(truncated: boolean): void {
    const body = this.#body.subarray(0, this.#maxBody).toString()
    this.#settled({ status: this.#status, headers: this.#headers, body, truncated })
  }
}
