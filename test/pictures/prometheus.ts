import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { request } from 'undici'
import { freePort } from '../support/listen.ts'
import { until } from '../support/until.ts'

export const ROOT = path.resolve(import.meta.dirname, '../..')
const CACHE = path.join(ROOT, 'node_modules/.cache/prometheus')
/** Milliseconds for fetching and unpacking the package, twenty megabytes. */
export const FETCH = 60_000

export const exec = promisify(execFile)

export interface Binaries {
  promtool: string
  prometheus: string
}

/** Debian's Prometheus: the one installed, or its package unpacked beside our dependencies. null if there is none. */
export async function findPrometheus(): Promise<Binaries | null> {
  for (const folder of ['/usr/bin', path.join(CACHE, 'usr/bin')]) {
    const found = { promtool: path.join(folder, 'promtool'), prometheus: path.join(folder, 'prometheus') }
    if (existsSync(found.promtool) && existsSync(found.prometheus)) return found
  }
  try {
    await unpack()
    return await findPrometheus()
  } catch (error) {
    process.stderr.write(
      `pictures: no Prometheus can be had (${String(error).split('\n')[0]}); the rules and the dashboard are NOT tried. ` +
        'Install it: apt-get install prometheus\n',
    )
    return null
  }
}

async function unpack(): Promise<void> {
  await mkdir(path.dirname(CACHE), { recursive: true })
  const folder = await mkdtemp(`${CACHE}-`)
  try {
    await exec('apt-get', ['download', 'prometheus'], { cwd: folder, timeout: FETCH / 2 })
    const [file = ''] = await readdir(folder)
    await exec('dpkg', ['-x', path.join(folder, file), path.join(folder, 'root')], { timeout: FETCH / 2 })
    // Another run may have been faster; then its files serve as well.
    await rename(path.join(folder, 'root'), CACHE).catch(() => undefined)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A Prometheus that scrapes `target` (host and port) every second, with our rules. */
export class Prometheus implements AsyncDisposable {
  readonly #base: string
  readonly #end: () => Promise<void>

  private constructor(base: string, end: () => Promise<void>) {
    this.#base = base
    this.#end = end
  }

  static async start(binary: string, folder: string, target: string): Promise<Prometheus> {
    const port = await freePort()
    const config = {
      global: { scrape_interval: '1s', evaluation_interval: '1s' },
      rule_files: [path.join(ROOT, 'config/prometheus/alerts.yaml')],
      scrape_configs: [{ job_name: 'sidecar', static_configs: [{ targets: [target] }] }],
    }
    const file = path.join(folder, 'prometheus.yml')
    await writeFile(file, JSON.stringify(config))
    const child = spawn(
      binary,
      [
        `--config.file=${file}`,
        `--storage.tsdb.path=${path.join(folder, 'tsdb')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: 'ignore' },
    )
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
    const made = new Prometheus(`http://127.0.0.1:${port}`, async () => {
      child.kill('SIGKILL')
      await ended
    })
    try {
      await until('Prometheus', async () => (await made.status('/-/ready').catch(() => 0)) === 200)
    } catch (error) {
      await made.#end()
      throw error
    }
    return made
  }

  async status(route: string): Promise<number> {
    const { statusCode, body } = await request(this.#base + route)
    await body.dump()
    return statusCode
  }

  /** @throws {Error} with what Prometheus says against the request. */
  async api<T>(route: string): Promise<T> {
    const { body } = await request(`${this.#base}/api/v1/${route}`)
    const answer = (await body.json()) as { status: string; data: T; error?: string }
    if (answer.status !== 'success') throw new Error(`${route}: ${answer.error}`)
    return answer.data
  }

  async query(expr: string): Promise<{ metric: Record<string, string>; value: [number, string] }[]> {
    const { result } = await this.api<{
      result: { metric: Record<string, string>; value: [number, string] }[]
    }>(`query?query=${encodeURIComponent(expr)}`)
    return result
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#end()
  }
}
