import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from '../simulation/chance.ts'
import { Flow } from './flow.ts'

/** What befalls connections that are open, at once. */
export const STROKES = ['cut', 'reset', 'halve', 'half_open', 'half_close'] as const
/** Faults that last until they are removed. */
export const AILMENTS = ['stall', 'delay', 'refuse'] as const

export type Stroke = (typeof STROKES)[number]
export type Ailment = (typeof AILMENTS)[number]

/** The longest that bytes are held back by `delay`, milliseconds. */
const DELAY = 300
/** The share of the open connections that a stroke meets. */
const SHARE = 0.6

interface Pair {
  client: Socket
  server: Socket
  flows: readonly [Flow, Flow]
}

/** A line between two processes, on loopback: it passes bytes on, until a fault is set. */
export class Link implements AsyncDisposable {
  readonly port: number
  readonly url: string
  /** When something went wrong here, wall milliseconds; null: it still does. */
  readonly #troubles: { from: number; until: number | null }[] = []
  readonly #target: number
  readonly #chance: Chance
  readonly #pairs = new Set<Pair>()
  #server: Server
  /** Two faults may end at once: the port is opened once. */
  #opening: Promise<Server> | null = null
  #held: PromiseWithResolvers<void> | null = null
  #delay = 0

  private constructor(server: Server, port: number, target: number, chance: Chance) {
    this.#server = server
    this.port = port
    this.url = `http://127.0.0.1:${port}`
    this.#target = target
    this.#chance = chance
  }

  static async open(port: number, target: number, chance: Chance): Promise<Link> {
    let link: Link | undefined
    const server = await listening(port, (client) => link?.accept(client))
    link = new Link(server, port, target, chance)
    return link
  }

  /** @returns how many connections it met. */
  strike(stroke: Stroke): number {
    const met = this.#chance.some([...this.#pairs], SHARE)
    if (met.length > 0) this.#trouble(Date.now())
    for (const pair of met) this.#strike(pair, stroke)
    return met.length
  }

  /** Until `restore`. */
  async ail(ailment: Ailment): Promise<void> {
    this.#trouble(null)
    if (ailment === 'stall') this.#held ??= Promise.withResolvers()
    if (ailment === 'delay') this.#delay = this.#chance.int(1, DELAY)
    if (ailment === 'refuse') await this.#close()
  }

  get ailing(): boolean {
    return this.#held !== null || this.#delay > 0 || !this.#server.listening
  }

  async restore(): Promise<void> {
    for (const trouble of this.#troubles) trouble.until ??= Date.now()
    this.#held?.resolve()
    this.#held = null
    this.#delay = 0
    if (!this.#server.listening) await this.#open()
  }

  async #open(): Promise<void> {
    this.#opening ??= listening(this.port, (client) => this.accept(client))
    try {
      this.#server = await this.#opening
    } finally {
      this.#opening = null
    }
  }

  /** Whether nothing went wrong in that time, wall milliseconds. */
  quiet(from: number, until: number): boolean {
    return !this.#troubles.some((trouble) => trouble.from < until && (trouble.until ?? Infinity) > from)
  }

  #trouble(until: number | null): void {
    this.#troubles.push({ from: Date.now(), until })
  }

  /** Connections that a stroke left half open would be noticed after 45 s; calm begins with new ones. */
  cutAll(): void {
    if (this.#pairs.size > 0) this.#trouble(Date.now())
    for (const pair of this.#pairs) this.#strike(pair, 'reset')
  }

  accept(client: Socket): void {
    const server = connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true })
    const torn = (): void => this.#strike(pair, 'reset')
    const pass = (): Promise<void> => this.#pass()
    const pair: Pair = {
      client,
      server,
      flows: [new Flow(client, server, pass, torn), new Flow(server, client, pass, torn)],
    }
    this.#pairs.add(pair)
    for (const socket of [client, server]) {
      socket.on('error', torn)
      socket.on('close', () => {
        if (client.destroyed && server.destroyed) this.#pairs.delete(pair)
      })
    }
  }

  async #pass(): Promise<void> {
    while (this.#held !== null) await this.#held.promise
    if (this.#delay > 0) await pause(this.#delay)
  }

  #strike({ client, server, flows }: Pair, stroke: Stroke): void {
    switch (stroke) {
      case 'cut':
        for (const flow of flows) flow.drop()
        client.destroy()
        return void server.destroy()
      case 'reset':
        for (const flow of flows) flow.drop()
        client.resetAndDestroy()
        return void server.resetAndDestroy()
      case 'halve':
        return this.#chance.pick(flows).halve()
      case 'half_open':
        // The other side has closed without notice.
        for (const flow of flows) flow.drop()
        return void this.#chance.pick([client, server]).destroy()
      case 'half_close':
        return void this.#chance.pick([client, server]).end()
    }
  }

  async #close(): Promise<void> {
    await this.#opening
    if (!this.#server.listening) return
    // Those that are open stay: only new ones are refused.
    this.#server.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#held?.resolve()
    this.#held = null
    await this.#close()
    for (const pair of this.#pairs) this.#strike(pair, 'reset')
  }
}

async function listening(port: number, accept: (client: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, accept)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  return server
}
