import { mkdirSync } from 'node:fs'
import path from 'node:path'
import type { Build } from '../../support/build.ts'
import { freePort } from '../../support/listen.ts'
import { Chance } from '../../simulation/chance.ts'
import { writeConfiguration } from '../configuration.ts'
import { Link } from '../link.ts'
import { Sidecar, type Life } from '../sidecar.ts'

/** What all replicas of a round have in common. */
export interface Common {
  seed: number
  folder: string
  build: Build
  token: string
  adminToken: string
  canary: string
  /** Where the lines to PostgreSQL, to the service and to the application end: ports. */
  targets: Readonly<Record<'database' | 'service' | 'app', number>>
  /** Of the balancer. */
  webhooks: string
}

/** A time on the wall clock, milliseconds. */
export interface Span {
  from: number
  until: number | null
}

/** One of the processes, with lines of its own to everything. */
export class Replica implements AsyncDisposable {
  readonly number: number
  readonly links: Readonly<Record<'database' | 'service' | 'app', Link>>
  readonly sidecar: Sidecar
  readonly webhookPort: number
  readonly log: string
  /** Times at which it was stopped by SIGSTOP. */
  readonly frozen: Span[] = []
  /** Times at which the database could not be reached, or only by luck. */
  readonly cutOff: Span[] = []
  /** Lives that ended otherwise than we ended them. */
  readonly diedAlone: Life[] = []

  private constructor(parts: Pick<Replica, 'number' | 'links' | 'sidecar' | 'webhookPort' | 'log'>) {
    this.number = parts.number
    this.links = parts.links
    this.sidecar = parts.sidecar
    this.webhookPort = parts.webhookPort
    this.log = parts.log
  }

  static async open(number: number, webhookPort: number, common: Common): Promise<Replica> {
    const { seed, targets, webhooks, adminToken, token, canary, build } = common
    const folder = path.join(common.folder, `replica-${number}`)
    mkdirSync(folder)
    const link = async (name: keyof typeof targets): Promise<Link> =>
      await Link.open(await freePort(), targets[name], new Chance(seed, `link ${number} ${name}`))
    const links = {
      database: await link('database'),
      service: await link('service'),
      app: await link('app'),
    }
    const adminPort = await freePort()
    const places = {
      service: links.service.url,
      handlers: links.app.url,
      tools: links.app.url,
      webhooks,
      webhookPort,
      adminPort,
      adminToken,
      store: `postgres://postgres@127.0.0.1:${links.database.port}/postgres`,
      polls: seed % 3 !== 0,
    }
    const file = writeConfiguration(folder, places, { token, library: build.library, canary })
    const sidecar = new Sidecar([build.main, 'run', '-c', file], folder, {
      url: `http://127.0.0.1:${adminPort}`,
      token: adminToken,
    })
    return new Replica({ number, links, sidecar, webhookPort, log: path.join(folder, 'sidecar.log') })
  }

  /** Whether it was stopped by SIGSTOP at some time of a span, wall milliseconds. */
  wasFrozen(from: number, until: number): boolean {
    return meets(this.frozen, from, until)
  }

  /** Whether its line to the database or the database itself was in trouble. */
  wasCutOff(from: number, until: number): boolean {
    return meets(this.cutOff, from, until) || !this.links.database.quiet(from, until)
  }

  async restore(): Promise<void> {
    for (const link of Object.values(this.links)) {
      await link.restore()
      link.cutAll()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.sidecar.signal('SIGCONT')
    if (this.sidecar.alive) await this.sidecar.kill()
    for (const link of Object.values(this.links)) await link[Symbol.asyncDispose]()
  }
}

function meets(spans: readonly Span[], from: number, until: number): boolean {
  return spans.some((span) => span.from < until && (span.until ?? Infinity) > from)
}
