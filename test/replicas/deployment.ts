import { mkdir } from 'node:fs/promises'
import { request as forward } from 'node:http'
import path from 'node:path'
import { request } from 'undici'
import type { ConfigInput } from '../../src/index.ts'
import type { Fields } from '../support/app.ts'
import { freePort, listen, type Listening } from '../support/listen.ts'
import { openDatabase } from '../support/postgres.ts'
import { asProcess, inProcess, type ProcessOptions, type Program } from '../support/program.ts'
import { Rig, type RigOptions } from '../support/rig.ts'
import { until } from '../support/until.ts'

export interface Replica {
  name: string
  program: Program
  webhooks: number
  admin(method: string, path: string, body?: unknown): Promise<Fields>
}

/** Replicas of one sidecar: one database, one service, one application; webhooks go to any of them in turn. */
export class Deployment implements AsyncDisposable {
  readonly rig: Rig
  readonly replicas: Replica[] = []
  readonly #balancer: Listening
  readonly #drop: () => Promise<void>
  readonly #process: boolean | ProcessOptions
  #turn = 0
  #made = 0

  private constructor(rig: Rig, balancer: Listening, drop: () => Promise<void>, options: RigOptions) {
    this.rig = rig
    this.#balancer = balancer
    this.#drop = drop
    this.#process = options.process ?? false
  }

  static async open(count: number, options: RigOptions = {}): Promise<Deployment> {
    const { url, drop } = await openDatabase()
    let deployment: Deployment | undefined
    const balancer = await listen((incoming, outgoing) => {
      const to = deployment?.nextWebhooks() ?? 0
      const { method = 'POST', url: path = '/', headers } = incoming
      const onward = forward({ host: '127.0.0.1', port: to, path, method, headers }, (reply) => {
        outgoing.writeHead(reply.statusCode ?? 502, reply.headers)
        reply.pipe(outgoing)
      })
      onward.on('error', () => outgoing.writeHead(502).end())
      incoming.pipe(onward)
    })
    const rig = await Rig.open({
      ...options,
      start: false,
      config: {
        ...options.config,
        store: { url },
        webhooks: { public_url: `${balancer.url}/webhooks`, ...options.config?.webhooks },
      },
    })
    deployment = new Deployment(rig, balancer, drop, options)
    try {
      for (let index = 0; index < count; index++) await deployment.add()
      if (count > 0) await deployment.shared()
    } catch (error) {
      await deployment[Symbol.asyncDispose]()
      throw error
    }
    return deployment
  }

  nextWebhooks(): number {
    return this.replicas[this.#turn++ % Math.max(1, this.replicas.length)]?.webhooks ?? 0
  }

  /** `more` and `process` stand in place of what the others have. */
  async add(more: Partial<ConfigInput> = {}, process = this.#process): Promise<Replica> {
    const name = `r${this.#made++}`
    const folder = path.join(this.rig.folder, name)
    await mkdir(folder)
    const webhooks = await freePort()
    const config = {
      ...this.rig.config,
      ...more,
      webhooks: { ...this.rig.config.webhooks, listen: `127.0.0.1:${webhooks}` },
    }
    const program =
      process === false
        ? await inProcess(config)
        : await asProcess(config, folder, process === true ? {} : process)
    const replica: Replica = {
      name,
      program,
      webhooks,
      async admin(method, at, body) {
        const response = await request(program.admin + at, {
          method: method as 'GET',
          ...(body === undefined
            ? {}
            : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
        })
        const text = await response.body.text()
        if (response.statusCode >= 300)
          throw new Error(`${method} ${at} at ${name}: ${response.statusCode} ${text}`)
        return text === '' ? {} : (JSON.parse(text) as Fields)
      },
    }
    this.replicas.push(replica)
    this.rig.program ??= program
    return replica
  }

  /** Every replica has its share, and one of them leads. */
  async shared(): Promise<void> {
    const share = Math.ceil(64 / this.replicas.length)
    await until(
      'shared shards',
      async () => {
        const seen = await this.seen()
        return (
          seen.length === this.replicas.length &&
          seen.filter(({ leader }) => leader).length === 1 &&
          seen.reduce((sum, { shards }) => sum + shards, 0) === 64 &&
          seen.every(({ shards }) => shards <= share)
        )
      },
      40_000,
    )
  }

  /** The replicas, as one of them shows them. */
  async seen(): Promise<{ id: string; self: boolean; leader: boolean; shards: number }[]> {
    const status = await this.replicas[0]?.admin('GET', '/api/status')
    return status?.['replicas'] as { id: string; self: boolean; leader: boolean; shards: number }[]
  }

  async leader(): Promise<Replica> {
    return await until(
      'leader',
      async () => {
        for (const replica of this.replicas)
          if ((await replica.admin('GET', '/api/status'))['leader'] === true) return replica
        return undefined
      },
      40_000,
    )
  }

  /** `how`: a clean stop, or SIGKILL. */
  async remove(replica: Replica, how: 'stop' | 'kill'): Promise<void> {
    this.replicas.splice(this.replicas.indexOf(replica), 1)
    if (this.rig.program === replica.program) this.rig.program = this.replicas[0]?.program ?? null
    await replica.program[how]()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.rig.program = null
    await Promise.all(this.replicas.map(({ program }) => program.stop().catch(() => undefined)))
    await this.#balancer[Symbol.asyncDispose]()
    await this.rig[Symbol.asyncDispose]()
    await this.#drop()
  }
}
