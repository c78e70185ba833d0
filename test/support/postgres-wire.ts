import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * `cut`: both sides lose the connection; `drop`: neither sees that the bytes are lost; `late`: the sender loses the connection,
 * and the other side gets the bytes with `sendLate`. `stall`: the other side takes nothing any more, as a frozen process.
 */
type Fate = 'pass' | 'cut' | 'drop' | 'late' | 'stall'

/** The way between a store and its server, which a test can cut at chosen bytes. */
export class Wire {
  /** Of bytes to the server, before they are sent; a text in them is readable. */
  onRequest: (bytes: Buffer) => Fate = () => 'pass'
  /** Of bytes of the server, before they are passed on. */
  onAnswer: (bytes: Buffer) => Fate = () => 'pass'
  /** Where new connections lead. */
  target: URL
  readonly url: string
  readonly #sockets = new Set<Socket>()
  readonly #late: { to: Socket; bytes: Buffer }[] = []
  readonly #server: Server

  private constructor(server: Server, target: URL) {
    this.#server = server
    this.target = target
    server.on('connection', (near) => this.#join(near))
    const url = new URL(target)
    url.port = String((server.address() as AddressInfo).port)
    this.url = url.href
  }

  /** To the server of `url`; it ends with the test. */
  static async to(url: string): Promise<Wire> {
    const server = createServer()
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const wire = new Wire(server, new URL(url))
    onTestFinished(() => wire.close())
    return wire
  }

  #join(near: Socket): void {
    const far = connect(Number(this.target.port), this.target.hostname)
    this.#pass(near, far, (bytes) => this.onRequest(bytes))
    this.#pass(far, near, (bytes) => this.onAnswer(bytes))
  }

  #pass(from: Socket, to: Socket, fateOf: (bytes: Buffer) => Fate): void {
    this.#sockets.add(from)
    from.on('data', (bytes) => {
      const fate = fateOf(bytes)
      if (fate === 'pass') to.write(bytes)
      if (fate === 'cut') this.#cut(from, to)
      if (fate === 'stall') from.pause()
      if (fate === 'late') {
        this.#late.push({ to, bytes })
        from.destroy()
      }
    })
    const end = (): void => {
      this.#sockets.delete(from)
      if (!this.#late.some((one) => one.to === to)) to.destroy()
    }
    from.on('error', end)
    from.on('close', end)
  }

  /** Resolves when the other side has closed its connections too. */
  async sendLate(): Promise<void> {
    for (const { to, bytes } of this.#late.splice(0)) {
      const closed = once(to, 'close')
      to.end(bytes)
      await closed
    }
  }

  #cut(...sockets: readonly Socket[]): void {
    for (const socket of sockets) socket.destroy()
  }

  cutAll(): void {
    this.#cut(...this.#sockets)
  }

  close(): void {
    this.cutAll()
    this.#server.close()
  }
}
