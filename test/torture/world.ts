import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { App, NEXT_SECRET, SECRET } from '../support/app.ts'
import type { Build } from '../support/build.ts'
import type { ProfileName } from '../support/client.ts'
import { Gateway, type Passed } from '../support/gateway.ts'
import { freePort } from '../support/listen.ts'
import { Chance } from '../simulation/chance.ts'
import { Books, type Pages } from './books.ts'
import { writeConfiguration } from './configuration.ts'
import { openDisk, type Disk } from './disk.ts'
import type { Fault } from '../checker/history.ts'
import { Link } from './link.ts'
import { Load } from './load.ts'
import { Mood } from './mood.ts'
import { Service } from './service.ts'
import { Sidecar } from './sidecar.ts'
import { Tally } from './tally.ts'

export interface WorldOptions {
  seed: number
  build: Build
  /** May mount a small file system, where the machine lets us. */
  mount: boolean
}

/** An old token may be in use so long after it was replaced, milliseconds. */
const TOKEN_READ = 2000

/** All that stands around the program in one round, and the program. */
export class World implements AsyncDisposable {
  readonly seed: number
  readonly profile: ProfileName
  /** False in some rounds: then unreported events are found at the next start. */
  readonly polls: boolean
  readonly chance: Chance
  readonly tally = new Tally()
  readonly folder: string
  readonly service: Service
  readonly gateway: Gateway
  readonly app: App
  readonly mood: Mood
  readonly load: Load
  readonly sidecar: Sidecar
  readonly disk: Disk
  /** SQLite file of the program. */
  readonly store: string
  readonly links: Readonly<Record<'service' | 'handlers' | 'tools' | 'webhooks', Link>>
  /** What must never be seen outside, by name. */
  readonly secrets = new Map<string, string>()
  /** What was found to be wrong while things went on. */
  readonly violations: Fault[] = []
  /** `handler/id` of what was dead at some time. */
  readonly dead = new Set<string>()
  /** The service lost our cursor: the transcript may have gaps. */
  gaps = false
  /** Wall milliseconds: since when the disk is full, until when it was; null: it never was. */
  full: { from: number; until: number | null } | null = null
  /** An operator has deleted a file of the store, and the program writes it back: its disk must not be full. */
  meddled = false
  /** Wall milliseconds until which the program's token may be rejected. */
  rejectedUntil = 0
  /** Times at which the program was stopped and went on, wall milliseconds. */
  readonly pauses: { from: number; until: number }[] = []
  #token: { id: string; token: string }
  readonly #stack: AsyncDisposableStack

  private constructor(
    options: WorldOptions,
    parts: Pick<
      World,
      'folder' | 'service' | 'gateway' | 'app' | 'sidecar' | 'disk' | 'store' | 'links' | 'chance'
    > & { token: { id: string; token: string }; canary: string; refusal: string },
    stack: AsyncDisposableStack,
  ) {
    this.seed = options.seed
    this.profile = profileOf(options.seed)
    this.polls = pollsIn(options.seed)
    this.chance = parts.chance
    this.folder = parts.folder
    this.service = parts.service
    this.gateway = parts.gateway
    this.app = parts.app
    this.sidecar = parts.sidecar
    this.disk = parts.disk
    this.store = parts.store
    this.links = parts.links
    this.#token = parts.token
    this.#stack = stack
    this.load = new Load(this.service, this.draw('load'), this.tally)
    this.mood = new Mood(this.app, {
      chance: this.draw('mood'),
      tally: this.tally,
      canary: parts.canary,
      refusal: parts.refusal,
      later: (callId, output) => void this.#answerLater(callId, output),
    })
    this.secrets.set('what a tool threw or said in failing', parts.canary)
    this.secrets.set('the secret of the handler app and of the tools', SECRET.slice('whsec_'.length))
    this.secrets.set('the secret of the handler books', NEXT_SECRET.slice('whsec_'.length))
    this.secrets.set('the service token', parts.token.token)
  }

  static async open(options: WorldOptions): Promise<World> {
    await using stack = new AsyncDisposableStack()
    const { seed, build } = options
    const chance = new Chance(seed, 'world')
    const profile = profileOf(seed)
    const folder = await mkdtemp(path.join(tmpdir(), `torture-${seed}-`))
    const disk = stack.use(await openDisk(folder, options.mount))
    const service = stack.use(new Service(profile, await freePort(), path.join(folder, 'service.db')))
    await service.start()
    const gateway = stack.use(await Gateway.start(service.url, await freePort()))
    const app = stack.use(await App.start())
    const webhookPort = await freePort()
    const link = async (target: number | string, name: string): Promise<Link> => {
      const port = typeof target === 'number' ? target : Number(new URL(target).port)
      return stack.use(await Link.open(await freePort(), port, new Chance(seed, `link ${name}`)))
    }
    const links = {
      service: await link(gateway.url, 'service'),
      handlers: await link(app.handlerUrl(''), 'handlers'),
      tools: await link(app.toolUrl(''), 'tools'),
      webhooks: await link(webhookPort, 'webhooks'),
    }
    const token = await service.mint()
    const canary = `canary-${chance.hex(12)}`
    const refusal = `refusal-${new Chance(seed, 'refusal').hex(12)}`
    const admin = { port: await freePort(), token: `canary-admin-${chance.hex(12)}` }
    const store = path.join(disk.folder, 'sidecar.db')
    const file = writeConfiguration(
      folder,
      {
        service: links.service.url,
        handlers: links.handlers.url,
        tools: links.tools.url,
        webhooks: links.webhooks.url,
        webhookPort,
        adminPort: admin.port,
        adminToken: admin.token,
        store: `sqlite:${store}`,
        polls: pollsIn(seed),
      },
      { token: token.token, library: build.library, canary },
    )
    const sidecar = new Sidecar([build.main, 'run', '-c', file], folder, {
      url: `http://127.0.0.1:${admin.port}`,
      token: admin.token,
    })
    stack.defer(async () => {
      if (sidecar.alive) await sidecar.kill()
    })
    const parts = {
      folder,
      service,
      gateway,
      app,
      sidecar,
      disk,
      store,
      links,
      chance,
      token,
      canary,
      refusal,
    }
    const world = new World(options, parts, stack.move())
    world.secrets.set('the admin token', admin.token)
    return world
  }

  /** Chance of its own for one concern. */
  draw(label: string): Chance {
    return new Chance(this.seed, label)
  }

  get logs(): readonly string[] {
    return [path.join(this.folder, 'sidecar.log')]
  }

  async pages(): Promise<Pages> {
    using books = new Books(this.store)
    return books.pages()
  }

  async metrics(): Promise<string> {
    return (await this.sidecar.ask('GET', '/metrics')).text
  }

  /** The bytes of each file of the store. */
  async stored(): Promise<[where: string, text: string][]> {
    return readdirSync(path.dirname(this.store))
      .filter((name) => name.startsWith(path.basename(this.store)))
      .map((name) => [`the file ${name}`, readFileSync(path.join(path.dirname(this.store), name), 'latin1')])
  }

  /** Whether the program lived, on a quiet line, and never stood still. */
  isUndisturbed(_request: Passed, from: number, until: number): boolean {
    const lived = this.sidecar.livedThrough(from, until)
    const stopped = this.pauses.some((pause) => pause.from < until && pause.until > from)
    return lived && !stopped && this.links.service.quiet(from, until)
  }

  processOf(): string {
    return 'the program'
  }

  /** Deliveries that are pending. */
  async pending(): Promise<number> {
    using books = new Books(this.store)
    return books.pending()
  }

  violated(invariant: string, message: string): void {
    this.violations.push({ invariant, message })
  }

  /** The token that the program has is rejected from now on. */
  async revokeToken(): Promise<void> {
    // A busy machine may take long over minting the next one.
    this.rejectedUntil = Infinity
    await this.service.revoke(this.#token.id)
  }

  /** Another token for the program, in its file. It is read within seconds. */
  async replaceToken(): Promise<void> {
    this.#token = await this.service.mint()
    this.secrets.set(`the service token ${this.secrets.size}`, this.#token.token)
    // At once, as tools that rotate secrets do: no reader sees half a token.
    const next = path.join(this.folder, 'token-next')
    writeFileSync(next, this.#token.token)
    renameSync(next, path.join(this.folder, 'token'))
    this.rejectedUntil = Date.now() + TOKEN_READ
  }

  async fillDisk(): Promise<boolean> {
    if (!this.sidecar.alive || this.meddled) return false
    const before = this.full
    this.full = { from: Date.now(), until: null }
    if (await this.disk.fill(this.sidecar.life.pid)) return true
    this.full = before
    return false
  }

  async freeDisk(): Promise<void> {
    await this.disk.free(this.sidecar.alive ? this.sidecar.life.pid : null)
    if (this.full !== null) this.full.until ??= Date.now()
  }

  async #answerLater(callId: string, output: string): Promise<void> {
    await this.sidecar.ask('POST', `/api/calls/${callId}/answer`, { output }).catch(() => undefined)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

/** The profiles take turns. */
function profileOf(seed: number): ProfileName {
  return seed % 2 === 0 ? 'a' : 'b'
}

function pollsIn(seed: number): boolean {
  return seed % 3 !== 0
}
