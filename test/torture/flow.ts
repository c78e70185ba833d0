import { once } from 'node:events'
import type { Socket } from 'node:net'

/** Unsent bytes above which we read no more from the source. */
const HELD_MOST = 4 * 1024 * 1024

/** One direction of a connection through a link. */
export class Flow {
  readonly #source: Socket
  readonly #sink: Socket
  /** Resolves when the next bytes may pass. */
  readonly #pass: () => Promise<void>
  readonly #torn: () => void
  /** null: the source has ended. */
  readonly #queue: (Buffer | null)[] = []
  #held = 0
  #running = false
  #halving = false
  #over = false

  constructor(source: Socket, sink: Socket, pass: () => Promise<void>, torn: () => void) {
    this.#source = source
    this.#sink = sink
    this.#pass = pass
    this.#torn = torn
    source.on('data', (bytes) => this.#push(bytes))
    source.on('end', () => {
      // HTTP clients do not half-close: who hangs up while bytes are on their way wants them no more.
      if (this.#held > 0) torn()
      else this.#push(null)
    })
  }

  /** Half of what comes next passes, then the connection breaks. */
  halve(): void {
    this.#halving = true
  }

  /** No data passes any more, and neither side is notified. */
  drop(): void {
    this.#over = true
    this.#queue.length = 0
    this.#source.resume()
  }

  #push(bytes: Buffer | null): void {
    if (this.#over) return
    this.#queue.push(bytes)
    this.#held += bytes?.length ?? 0
    if (this.#held > HELD_MOST) this.#source.pause()
    if (!this.#running) void this.#run()
  }

  async #run(): Promise<void> {
    this.#running = true
    while (this.#queue.length > 0) {
      await this.#pass()
      if (this.#over) return
      const bytes = this.#queue.shift()
      if (bytes === undefined) return
      if (bytes === null) this.#sink.end()
      else {
        if (this.#halving) {
          this.#sink.write(bytes.subarray(0, Math.floor(bytes.length / 2)), this.#torn)
          return this.drop()
        }
        if (this.#sink.writable && !this.#sink.write(bytes)) await room(this.#sink)
        this.#held -= bytes.length
        if (this.#held <= HELD_MOST) this.#source.resume()
      }
    }
    this.#running = false
  }
}

async function room(sink: Socket): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  await Promise.race([once(sink, 'drain', { signal }), once(sink, 'close', { signal })]).catch(
    () => undefined,
  )
  over.abort()
}
