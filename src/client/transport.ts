import { messageOf } from '../std/errors.ts'
import { ServiceError } from '../core/errors.ts'
import { StreamSlot } from '../protocol/slot.ts'
import type { Clock, HttpReply, HttpStream, Random } from '../std/ports.ts'
import type { Explorer } from './explorer.ts'
import { readJson } from '../std/depth.ts'
import { ended } from './transport/requester.ts'
import type { Requester } from './transport/requester.ts'
import type { Route } from './discovery/route.ts'
import type { WholeDiscovery, WholeName } from './discovery/whole.ts'
import { callOf, keyOf } from './call.ts'
import type { Operation, Request } from './call.ts'
import type { CallOptions } from './request.ts'
import type { Reader } from './shape.ts'
import { link, raced } from './signal.ts'

export type Token = string | (() => string | Promise<string>)

/** `svc_pat_…`, copied from a document: its last character cannot be sent in a header. */
export function isSendable(token: unknown): boolean {
  return typeof token === 'string' && /^[\x21-\x7e]+$/.test(token.trim())
}

export interface TransportParts {
  clock: Clock
  random: Random
  token: Token
  requester: Requester
  explorer: Explorer<WholeName, WholeDiscovery>
  /** Milliseconds for a call with all waits and attempts. */
  timeout: number
}

/** Sends the app's calls to the service, with token, route, time limit and retries. */
export class Transport {
  readonly #parts: TransportParts
  /** Shared by all streams of the client. */
  readonly slot = new StreamSlot()

  constructor(parts: TransportParts) {
    this.#parts = parts
  }

  get clock(): Clock {
    return this.#parts.clock
  }

  get random(): Random {
    return this.#parts.random
  }

  /** Aborted when the client is closed. */
  get stopped(): AbortSignal {
    return this.#parts.requester.stopped
  }

  get requester(): Requester {
    return this.#parts.requester
  }

  get found(): WholeDiscovery {
    return this.#parts.explorer.found
  }

  /** Runs `run` within the time limit of one call. Its errors name the operation `nameInErrors`. */
  async within<T>(
    name: WholeName,
    options: CallOptions | undefined,
    run: (operation: Operation) => Promise<T>,
    nameInErrors: string = name,
  ): Promise<T> {
    const { clock, timeout: usual, requester } = this.#parts
    const { timeout = usual, signal: given } = options ?? {}
    if (!(timeout > 0)) throw new TypeError(`timeout: ${timeout} is not a number of milliseconds`)
    const limit = new AbortController()
    const deadline = clock.steady() + timeout
    const timer = clock.after(timeout, () => limit.abort(late(timeout)))
    const unlink = [link(given, limit), link(requester.stopped, limit)]
    try {
      const operation = { name, signal: limit.signal, left: () => Math.max(0, deadline - clock.steady()) }
      await this.#prepare(operation)
      return await run(operation)
    } catch (error) {
      throw named(nameInErrors, limit.signal.aborted ? ended(limit.signal) : error)
    } finally {
      timer.cancel()
      for (const off of unlink) off()
    }
  }

  /** Sends one request, and parses its answer with `read`. */
  call<T>(
    name: WholeName,
    request: Request,
    options: CallOptions | undefined,
    read: Reader<T>,
    what: string,
  ): Promise<T> {
    return this.within(name, options, (operation) => this.read(operation, request, read, what))
  }

  async read<T>(operation: Operation, request: Request, read: Reader<T>, what: string): Promise<T> {
    const reply = await this.send(operation, request)
    try {
      return read(reply.body.trim() === '' ? null : readJson(reply.body), what)
    } catch (error) {
      throw new ServiceError({
        code: 'malformed_answer',
        status: reply.status,
        message: messageOf(error),
        requestId: reply.headers['x-request-id'] ?? null,
        cause: error,
      })
    }
  }

  send(operation: Operation, request: Request): Promise<HttpReply> {
    const key = keyOf(request.act, this.#parts.random)
    return this.#routed(operation, (route) =>
      this.#parts.requester.send(callOf(operation, route, request, key)),
    )
  }

  /** Opens a body that is read piece by piece. It ends with `lasting`, not with the operation. */
  open(operation: Operation, request: Request, lasting: AbortController): Promise<HttpStream> {
    const { requester } = this.#parts
    const off = link(operation.signal, lasting)
    return this.#routed(operation, (route) => {
      const call = callOf(operation, route, request, undefined)
      const { path } = call
      return requester.persist(call, () =>
        requester.open({
          operation: operation.name,
          path,
          headers: { accept: '*/*' },
          signal: lasting.signal,
        }),
      )
    }).finally(off)
  }

  /** @throws {ServiceError} `route_unknown` */
  async routeOf(name: WholeName): Promise<Route> {
    const route = await this.#parts.explorer.route(name)
    if (route.found) return route
    const message = route.reason.replaceAll('service.routes', 'routes')
    throw new ServiceError({ code: 'route_unknown', status: 0, message })
  }

  /** Calls the token function, and uses its result for all further requests. */
  async renewToken(): Promise<void> {
    const { token, requester } = this.#parts
    if (typeof token === 'string') return
    const unavailable = (message: string, cause?: unknown): ServiceError =>
      new ServiceError({ code: 'token_unavailable', status: 0, message, cause })
    let given: string
    try {
      given = await token()
    } catch (cause) {
      throw unavailable('the function that gives the token threw', cause)
    }
    if (!isSendable(given)) throw unavailable('the function that gives the token did not return one')
    requester.authorization.replace(given)
  }

  async #prepare({ signal }: Operation): Promise<void> {
    const { explorer } = this.#parts
    signal.throwIfAborted()
    await raced(this.renewToken(), signal)
    if (explorer.lacking) await raced(explorer.discover(), signal)
  }

  async #routed<T>({ name }: Operation, go: (route: Route) => Promise<T>): Promise<T> {
    const route = await this.routeOf(name)
    return this.#parts.explorer.follow(name, route, go)
  }
}

export function named(operation: string, error: unknown): unknown {
  if (error instanceof ServiceError) error.operation ??= operation
  return error
}

function late(timeout: number): ServiceError {
  const message = `no result after ${timeout} ms; the request may have had its effect`
  return new ServiceError({ code: 'timeout', status: 0, message })
}
