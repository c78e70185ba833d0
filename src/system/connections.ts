import { Client } from 'undici'
import { NetworkFault } from '../std/errors.ts'

/** A request for one connection for one exchange. */
export interface Acquirer {
  /** The acquirer owns the connection until it releases or drops it. */
  acquired(client: Client): void
  /** There will be no connection, or the present one is closed. */
  abandon(kind: 'aborted', message: string): void
}

/**
 * The maximum number of exchanges that wait for a connection of one origin; more is a bug of the
 * caller.
 */
const WAITING_MAX = 10_000

/**
 * The connections to one origin, at most `limit`, waiting acquirers in order of arrival.
 *
 * An undici Client is one connection that opens itself when needed. undici's Pool cannot give up a
 * request that still waits for its connection: with a peer that drops packets such requests pile
 * up, and each of them later opens a connection for a caller that has left. Here the caller's
 * timeout frees the slot at once.
 */
export class Connections {
  readonly #origin: string
  readonly #limit: number
  readonly #options: Client.Options
  /** Each connection with its acquirer. */
  readonly #clients = new Map<Client, Acquirer | null>()
  readonly #idle: Client[] = []
  readonly #waiting = new Set<Acquirer>()
  #destroyed = false

  constructor(origin: string, limit: number, options: Client.Options) {
    this.#origin = origin
    this.#limit = Math.max(1, limit)
    this.#options = options
  }

  /** @throws {NetworkFault} when too many wait already, or after `destroy`. */
  wait(acquirer: Acquirer): void {
    if (this.#destroyed) throw new NetworkFault('aborted', 'closed')
    const client = this.#idle.pop() ?? this.#another()
    if (client !== null) this.#assign(client, acquirer)
    else if (this.#waiting.size < WAITING_MAX) this.#waiting.add(acquirer)
    else throw new NetworkFault('other', `${WAITING_MAX} requests wait for ${this.#origin} already`)
  }

  leave(acquirer: Acquirer): void {
    this.#waiting.delete(acquirer)
  }

  release(client: Client): void {
    if (!this.#clients.has(client)) return
    const next = this.#next()
    if (next !== null) return this.#assign(client, next)
    this.#clients.set(client, null)
    this.#idle.push(client)
  }

  /** For a connection that is not open yet and whose acquirer has left. */
  drop(client: Client): void {
    if (!this.#clients.delete(client)) return
    void client.destroy()
    const next = this.#next()
    if (next !== null) this.wait(next)
  }

  /** Ends every exchange with a fault of kind `aborted` and closes every connection. */
  async destroy(): Promise<void> {
    this.#destroyed = true
    const clients = [...this.#clients]
    const acquirers = [...this.#waiting, ...this.#clients.values()]
    this.#clients.clear()
    this.#waiting.clear()
    this.#idle.length = 0
    for (const acquirer of acquirers) acquirer?.abandon('aborted', 'closed')
    await Promise.all(clients.map(([client]) => client.destroy()))
  }

  #assign(client: Client, acquirer: Acquirer): void {
    this.#clients.set(client, acquirer)
    acquirer.acquired(client)
  }

  #another(): Client | null {
    if (this.#clients.size >= this.#limit) return null
    const client = new Client(this.#origin, this.#options)
    this.#clients.set(client, null)
    return client
  }

  #next(): Acquirer | null {
    for (const acquirer of this.#waiting) {
      this.#waiting.delete(acquirer)
      return acquirer
    }
    return null
  }
}
