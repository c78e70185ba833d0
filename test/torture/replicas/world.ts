import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { App, NEXT_SECRET, SECRET } from '../../support/app.ts'
import type { Build } from '../../support/build.ts'
import { Gateway, type Passed } from '../../support/gateway.ts'
import { freePort } from '../../support/listen.ts'
import { PostgresServer } from '../../support/postgres.ts'
import { Chance } from '../../simulation/chance.ts'
import { examinePages } from '../autopsy.ts'
import type { Pages } from '../books.ts'
import type { Fault } from '../../checker/history.ts'
import { Load } from '../load.ts'
import { Mood } from '../mood.ts'
import type { Round } from '../oracle/evidence.ts'
import { postings } from '../oracle/postings.ts'
import { Service } from '../service.ts'
import type { Sidecar } from '../sidecar.ts'
import { Tally } from '../tally.ts'
import { Balancer } from './balancer.ts'
import { PostgresBooks } from './books.ts'
import { Replica } from './replica.ts'

export interface ReplicaOptions {
  seed: number
  build: Build
  replicas: number
  /** Of the service, where they are others than those of all rounds. */
  limits?: { streamSlotMs: number }
}

type Parts = Pick<
  ReplicaWorld,
  'folder' | 'postgres' | 'service' | 'gateway' | 'app' | 'replicas' | 'balancer'
> & {
  canary: string
  token: string
  adminToken: string
}

/** All that stands around several processes on one PostgreSQL in one round, and the processes. */
export class ReplicaWorld implements Round, AsyncDisposable {
  readonly seed: number
  readonly folder: string
  readonly tally = new Tally()
  readonly postgres: PostgresServer
  readonly books: PostgresBooks
  readonly service: Service
  readonly gateway: Gateway
  readonly app: App
  readonly mood: Mood
  readonly load: Load
  readonly replicas: readonly Replica[]
  readonly balancer: Balancer
  readonly violations: Fault[] = []
  /** What must never be seen outside, by name. */
  readonly secrets: ReadonlyMap<string, string>
  readonly dead = new Set<string>()
  /** The service never loses a cursor here. */
  readonly gaps = false
  readonly #stack: AsyncDisposableStack

  private constructor(options: ReplicaOptions, parts: Parts, stack: AsyncDisposableStack) {
    this.seed = options.seed
    this.folder = parts.folder
    this.postgres = parts.postgres
    this.books = new PostgresBooks(parts.postgres.url())
    this.service = parts.service
    this.gateway = parts.gateway
    this.app = parts.app
    this.replicas = parts.replicas
    this.balancer = parts.balancer
    this.secrets = new Map([
      ['what a tool threw or said in failing', parts.canary],
      ['the secret of the handler app and of the tools', SECRET.slice('whsec_'.length)],
      ['the secret of the handler books', NEXT_SECRET.slice('whsec_'.length)],
      ['the service token', parts.token],
      ['the admin token', parts.adminToken],
    ])
    this.#stack = stack
    this.load = new Load(this.service, this.draw('load'), this.tally)
    this.mood = new Mood(this.app, {
      chance: this.draw('mood'),
      tally: this.tally,
      canary: parts.canary,
      refusal: `refusal-${this.draw('refusal').hex(12)}`,
      later: (callId, output) => void this.#answerLater(callId, output),
    })
  }

  static async open(options: ReplicaOptions): Promise<ReplicaWorld> {
    await using stack = new AsyncDisposableStack()
    const { seed, build } = options
    const chance = new Chance(seed, 'world')
    const folder = await mkdtemp(path.join(tmpdir(), `torture-${seed}-`))
    const postgres = await PostgresServer.start()
    stack.defer(() => postgres.stop())
    const profile = seed % 2 === 0 ? 'a' : 'b'
    const service = stack.use(
      new Service(profile, await freePort(), path.join(folder, 'service.db'), options.limits),
    )
    await service.start()
    const gateway = stack.use(await Gateway.start(service.url, await freePort()))
    const app = stack.use(await App.start())
    const webhookPorts: number[] = []
    for (let count = 0; count < options.replicas; count++) webhookPorts.push(await freePort())
    const balancer = stack.use(await Balancer.open(await freePort(), webhookPorts))
    const { token } = await service.mint()
    const canary = `canary-${chance.hex(12)}`
    const common = {
      seed,
      folder,
      build,
      token,
      adminToken: `canary-admin-${chance.hex(12)}`,
      canary,
      targets: { database: postgres.port, service: portOf(gateway.url), app: portOf(app.handlerUrl('')) },
      webhooks: balancer.url,
    }
    const replicas: Replica[] = []
    for (const [index, port] of webhookPorts.entries())
      replicas.push(stack.use(await Replica.open(index + 1, port, common)))
    return new ReplicaWorld(
      options,
      {
        folder,
        postgres,
        service,
        gateway,
        app,
        replicas,
        balancer,
        canary,
        token,
        adminToken: common.adminToken,
      },
      stack.move(),
    )
  }

  draw(label: string): Chance {
    return new Chance(this.seed, label)
  }

  violated(invariant: string, message: string): void {
    this.violations.push({ invariant, message })
  }

  /** The first that lives: each gives the same answers. */
  get sidecar(): Sidecar {
    const [first] = this.replicas
    if (first === undefined) throw new Error('there is no replica')
    return this.living[0]?.sidecar ?? first.sidecar
  }

  /** Whose line ends at this host, a name with a port. */
  replicaAt(host: string | undefined): Replica | undefined {
    const port = Number(host?.split(':')[1])
    return this.replicas.find(({ links }) => links.app.port === port || links.service.port === port)
  }

  processOf({ headers }: Passed): string {
    return headers.host ?? ''
  }

  /** Whether its process lived, on quiet lines, and never stood still. */
  isUndisturbed({ headers }: Passed, from: number, until: number): boolean {
    const replica = this.replicaAt(headers.host)
    if (replica === undefined) return false
    const lived = replica.sidecar.livedThrough(from, until)
    const isCut = replica.wasCutOff(from, until) || !replica.links.service.quiet(from, until)
    return lived && !isCut && !replica.wasFrozen(from, until)
  }

  /** Those that live. */
  get living(): readonly Replica[] {
    return this.replicas.filter(({ sidecar }) => sidecar.alive && sidecar.life.ready)
  }

  /** Of all that live, one after the other: samples of the same name are added up. */
  async metrics(): Promise<string> {
    const answers = await Promise.all(this.living.map(({ sidecar }) => sidecar.ask('GET', '/metrics')))
    return answers.map(({ text }) => text).join('\n')
  }

  stored(): Promise<[where: string, text: string][]> {
    return this.books.dump()
  }

  get logs(): readonly string[] {
    return this.replicas.map(({ log }) => log)
  }

  pages(): Promise<Pages> {
    return this.books.pages()
  }

  pending(): Promise<number> {
    return this.books.pending()
  }

  /** Everything that was said and done must be in the database already. Says nothing while that or the service is unreachable. */
  async examine(): Promise<void> {
    const ledger = await this.service.ledger().catch(() => null)
    const posted = postings(this)
    const pages = await this.pages().catch(() => null)
    if (pages !== null) examinePages(this, pages, { ledger, posted })
  }

  async #answerLater(callId: string, output: string): Promise<void> {
    await this.sidecar.ask('POST', `/api/calls/${callId}/answer`, { output }).catch(() => undefined)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}
