import { onTestFinished } from 'vitest'
import { NetworkFault } from '../../src/std/errors.ts'
import { ServiceError } from '../../src/core/errors.ts'
import type { Service } from '../../src/core/ports.ts'
import type { Session } from '../../src/core/resource.ts'
import type { Batch, Committed, Store } from '../../src/core/store.ts'
import { fanOut, type TransientEvent } from '../../src/core/observer.ts'
import { readSession } from '../../src/core/wire.ts'
import { MemoryWindow } from '../../src/sidecar/deliver/lane.ts'
import { readFrame } from '../../src/sidecar/intake/frame.ts'
import { createStream, type StreamOptions } from '../../src/sidecar/source/stream.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog, longestWaits } from '../support/ports.ts'

/** One connection of the stream, fed by the test. */
export class Connection implements AsyncIterable<Uint8Array> {
  readonly cursor: string | null
  readonly signal: AbortSignal
  readonly #queue: (Uint8Array | Error | null)[] = []
  #wake: () => void = () => undefined
  /** Chunks that the reader has taken. */
  taken = 0

  constructor(cursor: string | null, signal: AbortSignal) {
    this.cursor = cursor
    this.signal = signal
    signal.addEventListener('abort', () =>
      this.#put(new NetworkFault('aborted', 'the connection was aborted')),
    )
  }

  send(text: string | Uint8Array): void {
    this.#put(typeof text === 'string' ? new TextEncoder().encode(text) : text)
  }

  end(): void {
    this.#put(null)
  }

  break(): void {
    this.#put(new NetworkFault('reset', 'the connection was reset'))
  }

  #put(entry: Uint8Array | Error | null): void {
    this.#queue.push(entry)
    this.#wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const entry = this.#queue.shift()
      if (entry === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        continue
      }
      if (entry === null) return
      if (entry instanceof Error) throw entry
      this.taken++
      yield entry
    }
  }
}

/** A persisted frame as the service sends it. */
export function frame(seq: number | string, type = 'agent.message', more: object = {}): string {
  const data = JSON.stringify({ type, session_id: 'ses_1', payload: { text: `frame ${seq}` }, ...more })
  return `event: ${type}\nid: ${seq}\ndata: ${data.slice(0, -1)},"seq":${seq}}\n\n`
}

export const transient = (text: string): string =>
  `event: agent.text\ndata: {"type":"agent.text","session_id":"ses_1","seq":null,"payload":{"text":"${text}"}}\n\n`

/** A stream over a real store, a service of one operation, and time that the test moves. */
export function streamWorld(
  options: { maxPages?: number; startFrom?: StreamOptions['startFrom']; store?: Store } = {},
) {
  const clock = new VirtualClock()
  const log = keepingLog()
  const store =
    options.store ??
    openSqliteStore({
      path: ':memory:',
      clock,
      log,
      ...(options.maxPages === undefined ? {} : { maxPages: options.maxPages }),
    })
  onTestFinished(() => store.close())
  const connections: Connection[] = []
  const refusals: ServiceError[] = []
  const reasons: string[] = []
  const transients: TransientEvent[] = []
  const batches: Batch[] = []
  let quarantined = 0
  const world = {
    /** Frames that were said to be in quarantine. */
    quarantined: () => quarantined,
    clock,
    log,
    store,
    connections,
    refusals,
    /** What is refused for as long as it is set. */
    refuse: ((_cursor: string | null) => null) as (cursor: string | null) => ServiceError | null,
    /** Sessions that cannot be looked up, and why. */
    unreadable: new Map<string, ServiceError>(),
    reasons,
    transients,
    batches,
    authorized: true,
    /** Of the service's clock, milliseconds; null before an answer had it. */
    offset: 0 as number | null,
    /** When a session was made, for who looks it up. */
    createdAt: new Map<string, number>(),
    sessionAt(id: string): Session {
      const raw = { id, status: 'idle', updated_at: 0, created_at: this.createdAt.get(id) ?? 0 }
      return readSession(raw, () => undefined)
    },
    setAuthorized: (() => undefined) as (authorized: boolean) => void,
    commit: (batch: Batch): Promise<Committed> => store.log.commit(batch),
    last: (): Connection => {
      const connection = connections.at(-1)
      if (connection === undefined) throw new Error('the stream was never opened')
      return connection
    },
    async seqs() {
      const seqs: (string | null)[] = []
      for (let after: string | undefined, more = true; more;) {
        const page = await store.read.facts({
          limit: 100,
          order: 'asc',
          ...(after === undefined ? {} : { after }),
        })
        seqs.push(...page.rows.map(({ seq }) => seq))
        more = page.more
        after = page.rows.at(-1)?.id
      }
      return seqs
    },
    cursor: () => store.settings.checkpoint('stream'),
  }
  const service: Pick<
    Service,
    'openStream' | 'authorized' | 'onAuthorization' | 'clockOffset' | 'clockOpen' | 'readSession'
  > = {
    async openStream(cursor, signal) {
      const refusal = refusals.shift() ?? world.refuse(cursor)
      if (refusal !== null) throw refusal
      const connection = new Connection(cursor, signal)
      connections.push(connection)
      return connection
    },
    authorized: () => world.authorized,
    clockOffset: () => world.offset ?? 0,
    clockOpen: () => (world.offset === null ? Infinity : 1000),
    async readSession(id) {
      const error = world.unreadable.get(id)
      if (error !== undefined) throw error
      return world.sessionAt(id)
    },
    onAuthorization: (listener) => void (world.setAuthorized = listener),
  }
  const stream = createStream({
    service: service as Service,
    store,
    intake: {
      readFrame,
      async commit(batch) {
        batches.push(batch)
        return await world.commit(batch)
      },
    },
    ownership: { publishTransient: (event) => transients.push(event), room: () => null },
    undelivered: new MemoryWindow(),
    observer: fanOut([
      { streamReconnect: (reason) => reasons.push(reason), quarantined: () => void quarantined++ },
    ]),
    clock,
    random: longestWaits,
    log,
    startFrom: options.startFrom ?? 'beginning',
  })
  onTestFinished(async () => {
    const stopped = stream.stop(10_000)
    await clock.settle()
    await stopped
  })
  return Object.assign(world, {
    stream,
    async start(): Promise<void> {
      stream.start()
      await clock.settle()
    },
  })
}

export function refused(status: number, code: string, retryAfter: number | null = null): ServiceError {
  return new ServiceError({ status, code, message: code, retryAfter })
}
