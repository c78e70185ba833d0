import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A received webhook delivery. */
export interface Delivery {
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly at: number
}

/** The most bytes of one delivery, and the most deliveries, that are kept. */
const LONGEST_DELIVERY = 1024 * 1024
const DELIVERIES_KEPT = 1000

/** A receiver of webhook deliveries; answers every one with 204. */
export class Receiver {
  readonly deliveries: Delivery[] = []
  readonly #server: Server

  private constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      let size = 0
      request.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size <= LONGEST_DELIVERY) chunks.push(chunk)
        else request.destroy()
      })
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString('utf8')
        this.deliveries.push({ headers: request.headers, body, at: Date.now() })
        if (this.deliveries.length > DELIVERIES_KEPT) this.deliveries.shift()
        response.writeHead(204).end()
      })
    })
    this.#server.requestTimeout = 10_000
  }

  /** Listens on `host`; port 0 chooses a free one. */
  static async listen(host: string, port: number): Promise<Receiver> {
    const receiver = new Receiver()
    await new Promise<void>((resolve, reject) => {
      receiver.#server.once('error', reject)
      receiver.#server.listen(port, host, resolve)
    })
    return receiver
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }
}
