import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** A balancer in front of several replicas: connections go in turn to those that accept them. */
export class Balancer implements AsyncDisposable {
  readonly url: string
  readonly #server: Server
  readonly #ports: readonly number[]
  readonly #sockets = new Set<Socket>()
  #next = 0

  private constructor(server: Server, port: number, ports: readonly number[]) {
    this.#server = server
    this.#ports = ports
    this.url = `http://127.0.0.1:${port}`
    server.on('connection', (client) => void this.#pass(client))
  }

  static async open(port: number, ports: readonly number[]): Promise<Balancer> {
    const server = createServer({ pauseOnConnect: true }).listen(port, '127.0.0.1')
    await once(server, 'listening')
    return new Balancer(server, port, ports)
  }

  async #pass(client: Socket): Promise<void> {
    this.#keep(client)
    const first = this.#next++
    for (let tried = 0; tried < this.#ports.length; tried++) {
      const port = this.#ports[(first + tried) % this.#ports.length] ?? 0
      const server = connect(port, '127.0.0.1')
      this.#keep(server)
      try {
        await once(server, 'connect')
      } catch {
        continue
      }
      client.once('close', () => server.destroy())
      server.once('close', () => client.destroy())
      if (client.destroyed) return void server.destroy()
      client.pipe(server)
      server.pipe(client)
      return
    }
    client.destroy()
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close()
    this.cutAll()
  }
}
