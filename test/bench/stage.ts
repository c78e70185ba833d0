import { setTimeout as pause } from 'node:timers/promises'
import { Type } from 'typebox'
import { Child } from './child.ts'
import { installQueues, type Queue } from './queues.ts'
import { handlerAt, type Bench } from './scenario.ts'
import { Subject, type Execution } from './subject.ts'

/** Longest that a run may take to deliver everything, milliseconds. */
export const PATIENCE = 120_000
/** Longest until a stream is open or all sessions are listed, milliseconds. */
const CONNECTING = 60_000

const Received = Type.Object({
  missing: Type.Integer(),
  repeats: Type.Integer(),
  lastAt: Type.Number(),
})

export interface SubjectOptions extends Execution {
  /** The most facts of one callback. */
  batch?: number
  /** Where its store is; a new one by default. */
  folder?: string | undefined
  /** In PostgreSQL; in a file by default. */
  store?: string
}

export interface Frames {
  /** Sent to a client that connects with a cursor; by default they are sent on command. */
  replay?: boolean
  /** The lowest seq, 1 by default. */
  first?: number
  /** Sessions of the service that ended long ago; none by default. */
  oldSessions?: number
}

/** The bench's own service and application, and either side that goes between them. */
export class Stage {
  readonly source: Child
  readonly receiver: Child
  readonly #bench: Bench
  readonly #service: string
  readonly #handler: string

  private constructor(bench: Bench, source: Child, receiver: Child, service: string, handler: string) {
    this.#bench = bench
    this.source = source
    this.receiver = receiver
    this.#service = service
    this.#handler = handler
  }

  static async open(bench: Bench): Promise<Stage> {
    const source = bench.use(await Child.fork('source'))
    const receiver = bench.use(await Child.fork('receiver'))
    const service = await source.ask('address', Type.String())
    const handler = await receiver.ask('address', Type.String())
    return new Stage(bench, source, receiver, service, handler)
  }

  /** Prepares frames, as `loadFrames`, and a receiver that expects them. */
  async load(count: number, frames: Frames = {}): Promise<void> {
    await loadFrames(this.source, count, frames)
    await this.receiver.do('expect', { frames: count, first: frames.first ?? 1 })
  }

  async startSubject(
    startFrom: 'now' | 'beginning',
    { batch = 1, folder = this.#bench.folder(), store, ...execution }: SubjectOptions = {},
  ): Promise<Subject> {
    const config = {
      service: { base_url: this.#service, token: 'svc_pat_bench' },
      stream: { start_from: startFrom },
      handlers: [handlerAt(`${this.#handler}/callbacks`, batch)],
      ...(store === undefined ? {} : { store: { url: store } }),
    }
    const subject = await Subject.start(folder, config, execution)
    await connected(this.source)
    return subject
  }

  /** All sessions of the service were listed to the sidecar. */
  async listed(): Promise<void> {
    await answers(this.source, 'listed')
  }

  async startBaseline(startFrom: 'now' | 'beginning'): Promise<Child> {
    const baseline = await Child.fork('baseline')
    await baseline.do('follow', {
      service: this.#service,
      handler: `${this.#handler}/callbacks`,
      ...(startFrom === 'beginning' ? { cursor: '0' } : {}),
    })
    await connected(this.source)
    return baseline
  }

  /** A queue on PostgreSQL in the place of the sidecar; `local`: many jobs are fetched at once. */
  async startQueue(queue: Queue, database: string, local: boolean): Promise<Child> {
    const child = await Child.fork('queue')
    await child.do('follow', {
      service: this.#service,
      handler: `${this.#handler}/callbacks`,
      queue,
      database,
      local,
      folder: installQueues(),
    })
    await connected(this.source)
    return child
  }

  /** When the last callback came. @throws {Error} unless each frame came, and came once. */
  async delivered(): Promise<number> {
    const { missing, repeats, lastAt } = await this.receiver.ask(
      'all',
      Received,
      { patience: PATIENCE },
      PATIENCE + CONNECTING,
    )
    if (missing > 0) throw new Error(`${missing} frames were not delivered within ${PATIENCE / 1000} s`)
    if (repeats > 0) throw new Error(`${repeats} callbacks came again though nothing had failed`)
    return lastAt
  }
}

/** Prepares `count` frames in `source`. */
export async function loadFrames(
  source: Child,
  count: number,
  { replay = false, first = 1, oldSessions = 0 }: Frames = {},
): Promise<void> {
  await source.do('load', { frames: count, replay, first, oldSessions })
}

/** Waits until the stream of `service` has a reader. */
export async function connected(service: Child): Promise<void> {
  await answers(service, 'connected')
}

async function answers(child: Child, question: 'connected' | 'listed'): Promise<void> {
  const limit = performance.now() + CONNECTING
  while (!(await child.ask(question, Type.Boolean()))) {
    if (performance.now() > limit) throw new Error(`the service is not ${question}`)
    await pause(10)
  }
}
