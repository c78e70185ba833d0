import { administer, PostgresServer } from '../support/postgres.ts'
import type { Bench } from './scenario.ts'

/** A server with the settings of the bench, by default those of PostgreSQL, also for durability; and an empty database of it for each run. */
export class Databases implements AsyncDisposable {
  readonly #server: PostgresServer
  #count = 0

  private constructor(server: PostgresServer) {
    this.#server = server
  }

  static async start(bench: Bench): Promise<Databases> {
    return bench.use(new Databases(await PostgresServer.start(bench.settings)))
  }

  async create(): Promise<string> {
    const name = `bench_${++this.#count}`
    await administer(this.#server.url(), `CREATE DATABASE ${name}`)
    return this.#server.url(name)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop()
  }
}
