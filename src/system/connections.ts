import { Client } from 'undici'
import { NetworkFault } from '../core/errors.ts'

/** Something that wants one connection for one exchange. */
export interface Passenger {
  /** The connection is this passenger's until it gives it back or drops it. */
  board(client: Client): void
  /** There will be no connection, or no more of the one that it has. */
  abandon(kind: 'aborted', message: string): void
}

/** Exchanges that wait for a connection of one origin; a caller with more in hand has lost control of itself. */
const WAITING_MAX = 10_000

/**
 * The connections to one origin, at most `limit`, waiting passengers in order of arrival.
 *
 * An undici Client is one connection that opens itself when it is needed. Its Pool would do, but it cannot give up a
 * request that still waits for its connection: against a peer that swallows packets such requests pile up, and each
 * of them costs a connection of its own after its caller is gone. Here the caller's timeout frees the place at once.
 */
export class Connections {
  readonly #origin: string
  readonly #limit: number
  readonly #options: Client.Options
  /** Each connection with who has it. */
  readonly #clients = new Map<Client, Passenger | null>()
  readonly #idle: Client[] = []
  readonly #waiting = new Set<Passenger>()
  #destroyed = false

  constructor(origin: string, limit: number, options: Client.Options) {
    this.#origin = origin
    this.#limit = Math.max(1, limit)
    this.#options = options
  }

  /** @throws {NetworkFault} when too many wait already, or after `destroy`. */
  wait(passenger: Passenger): void {
    if (this.#destroyed) throw new NetworkFault('aborted', 'closed')
    const client = this.#idle.pop() ?? this.#another()
    if (client !== null) this.#seat(client, passenger)
    else if (this.#waiting.size < WAITING_MAX) this.#waiting.add(passenger)
    else throw new NetworkFault('other', `${WAITING_MAX} requests wait for ${this.#origin} already`)
  }

  leave(passenger: Passenger): void {
    this.#waiting.delete(passenger)
  }

  giveBack(client: Client): void {
    if (!this.#clients.has(client)) return
    const next = this.#next()
    if (next !== null) return this.#seat(client, next)
    this.#clients.set(client, null)
    this.#idle.push(client)
  }

  /** For a connection that is not open yet and whose passenger is gone. */
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
    const passengers = [...this.#waiting, ...this.#clients.values()]
    this.#clients.clear()
    this.#waiting.clear()
    this.#idle.length = 0
    for (const passenger of passengers) passenger?.abandon('aborted', 'closed')
    await Promise.all(clients.map(([client]) => client.destroy()))
  }

  #seat(client: Client, passenger: Passenger): void {
    this.#clients.set(client, passenger)
    passenger.board(client)
  }

  #another(): Client | null {
    if (this.#clients.size >= this.#limit) return null
    const client = new Client(this.#origin, this.#options)
    this.#clients.set(client, null)
    return client
  }

  #next(): Passenger | null {
    for (const passenger of this.#waiting) {
      this.#waiting.delete(passenger)
      return passenger
    }
    return null
  }
}
