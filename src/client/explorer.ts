import { ServiceError } from '../core/errors.ts'
import { messageOf } from '../std/errors.ts'
import type { Clock, Log } from '../std/ports.ts'
import type { Finding } from './discovery/discovery.ts'
import { readJson } from '../std/depth.ts'
import { stopped, type Requester } from './transport/requester.ts'
import type { NoRoute, Route } from './discovery/route.ts'

/** A route disappeared although a document is known: milliseconds between two reads of the document. */
const AGAIN_AFTER = 60_000
/** No document was read yet: milliseconds between two attempts. */
const RETRY_AFTER = 5000
/** A document that cannot be read for so long counts as missing, milliseconds. */
const MISSING_AFTER = 60_000
const DOCUMENT = '/v1/openapi.json'

/** Keeps the result of discovery, and repeats discovery when the result seems out of date. */
export class Explorer<Name extends string, Found extends Finding<Name> = Finding<Name>> {
  readonly #requester: Pick<Requester, 'send'>
  readonly #clock: Clock
  readonly #log: Log
  readonly #discover: (document: unknown) => Found
  /** The routes without any document. */
  readonly #undocumented: Found
  #found: Found
  #looking: Promise<Found> | null = null
  #lookedAt = -Infinity
  /** No document was read yet, since the service or the network failed. `since`: steady milliseconds. */
  #passing: { error: ServiceError; since: number } | null = null

  /** @throws {OperatorError} on overrides that cannot be used. */
  constructor(options: {
    requester: Pick<Requester, 'send'>
    clock: Clock
    log: Log
    /** Finds the routes in a document, or without one (null), with the configured overrides. */
    discover: (document: unknown) => Found
  }) {
    this.#requester = options.requester
    this.#clock = options.clock
    this.#log = options.log
    this.#discover = options.discover
    this.#undocumented = options.discover(null)
    this.#found = { ...this.#undocumented, fault: 'it was not read yet' }
  }

  get found(): Found {
    return this.#found
  }

  /**
   * Reads the document once for all simultaneous callers. A fault of the document is in the result.
   * @throws {ServiceError} `stopped`, and nothing else.
   */
  discover(): Promise<Found> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null
    })
    return this.#looking
  }

  /** True while no document was read and it is time to try. */
  get lacking(): boolean {
    return !this.#found.documented && this.#due(RETRY_AFTER)
  }

  /**
   * The route of an operation. While no document was read and the route needs one, this tries to read it.
   * @throws {ServiceError} while the service is being replaced, and so cannot describe itself: the route may exist.
   */
  async route(operation: Name): Promise<Route | NoRoute> {
    let route = this.#found.routes[operation]
    if (!route.found && this.lacking) route = (await this.discover()).routes[operation]
    const passing = this.#passing
    if (!route.found && passing !== null && this.#clock.steady() - passing.since < MISSING_AFTER)
      throw passing.error
    return route
  }

  /** Calls an operation. If its route does not exist, finds the new route and calls it once more. */
  async follow<T>(operation: Name, route: Route, go: (route: Route) => Promise<T>): Promise<T> {
    try {
      return await go(route)
    } catch (error) {
      const moved = error instanceof ServiceError ? await this.#movedTo(operation, route, error) : null
      if (moved === null) throw error
      return await go(moved)
    }
  }

  /**
   * A 404 with the service's code `not_found` usually means the resource. It may mean the route only if the path is
   * known from a document alone.
   */
  async #movedTo(operation: Name, route: Route, error: ServiceError): Promise<Route | null> {
    const unexpected =
      error.status === 405 ||
      (error.status === 404 && (error.code !== 'not_found' || this.#fromDocumentAlone(operation, route)))
    if (!unexpected || !this.#due(AGAIN_AFTER)) return null
    const now = (await this.discover()).routes[operation]
    return now.found && (now.path !== route.path || now.method !== route.method) ? now : null
  }

  /** Whether the path came from a document, and the interface does not name it. */
  #fromDocumentAlone(operation: Name, route: Route): boolean {
    return route.how === 'document' && !this.#undocumented.routes[operation].found
  }

  #due(gap: number): boolean {
    return this.#looking !== null || this.#clock.steady() - this.#lookedAt >= gap
  }

  async #look(): Promise<Found> {
    try {
      const reply = await this.#read()
      const found = this.#discover(readJson(reply))
      this.#passing = null
      if (found.documented) this.#found = found
      else this.#failed('it describes no operation')
    } catch (error) {
      // Without the document, the caller would take a route as unknown that the document has.
      if (error instanceof ServiceError && error.code === 'stopped') throw stopped()
      const isPassing = !this.#found.documented && error instanceof ServiceError && error.transient
      const since = this.#passing?.since ?? this.#clock.steady()
      this.#passing = isPassing ? { error, since } : null
      this.#failed(messageOf(error))
    }
    this.#lookedAt = this.#clock.steady()
    return this.#found
  }

  /** The document needs no token (rule HLT-10); a service that requires one gets it. */
  async #read(): Promise<string> {
    const call = { operation: 'discover', method: 'GET', path: DOCUMENT } as const
    try {
      return (await this.#requester.send({ ...call, anonymous: true })).body
    } catch (error) {
      if (!(error instanceof ServiceError) || (error.status !== 401 && error.status !== 403)) throw error
      return (await this.#requester.send(call)).body
    }
  }

  /** The routes of an earlier document stay valid. */
  #failed(reason: string): void {
    this.#log.warn({ reason }, "the service's description could not be read")
    this.#found = { ...this.#found, fault: reason }
  }
}
