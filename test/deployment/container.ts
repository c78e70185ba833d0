import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from './documents.ts'

const exec = promisify(execFile)
/** One command: the install of all packages and the build, from a slow mirror, is the longest. Milliseconds. */
const STEP = 600_000
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt'

/** What an image says of the process that it starts. */
interface ImageConfig {
  User: string
  WorkingDir: string
  Cmd: string[]
  Env: string[]
  ExposedPorts: Record<string, object>
  Healthcheck?: { Test: string[] }
}

/** What `docker run` would be given. */
export interface RunOptions {
  /** `uid:gid`; default: the user of the image. */
  user?: string
  env?: Record<string, string>
  mounts: { from: string; to: string; readOnly: boolean }[]
  /** In place of the image's own command. */
  command?: readonly string[]
}

/** An unprivileged build needs user namespaces that many machines forbid: the image is built as root or not at all. */
export const canBuild =
  process.getuid?.() === 0 &&
  ['buildah', 'mmdebstrap', 'unshare'].every((program) => spawnSync(program, ['--version']).status === 0) &&
  existsSync(CERTIFICATES)
if (!canBuild)
  process.stderr.write(
    'deployment: the image is NOT built: that needs root, buildah, mmdebstrap, and certificates\n',
  )

/** Images that buildah makes in a folder of their own, which is gone at the end. */
export class Images implements AsyncDisposable {
  readonly #folder: string
  readonly #commands = new AbortController()

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** With the base of our Dockerfile: Debian, the Node of our pinned package, and this machine's npm. */
  static async open(): Promise<Images> {
    const images = new Images(await mkdtemp(path.join(tmpdir(), 'images-')))
    try {
      await images.#makeBase('docker.io/library/node:24-slim')
    } catch (error) {
      await images[Symbol.asyncDispose]()
      throw error
    }
    return images
  }

  async #makeBase(name: string): Promise<void> {
    const system = path.join(this.#folder, 'base.tar')
    await exec(
      'mmdebstrap',
      ['--quiet', '--variant=minbase', '--include=ca-certificates', 'bookworm', system],
      { timeout: STEP, signal: this.#commands.signal },
    )
    const { stdout } = await exec('bash', ['-c', 'readlink -f "$(command -v npm)"'])
    const container = await this.#buildah('from', 'scratch')
    await this.#buildah('add', '--quiet', container, system, '/')
    await this.#buildah('copy', '--quiet', container, process.execPath, '/usr/local/bin/node')
    const npm = '/usr/local/lib/node_modules/npm'
    await this.#buildah('copy', '--quiet', container, path.resolve(stdout.trim(), '../..'), npm)
    await this.#buildah('run', container, '--', 'ln', '-s', `${npm}/bin/npm-cli.js`, '/usr/local/bin/npm')
    // The registry may stand behind a proxy with a certificate that only this machine trusts.
    await this.#buildah('copy', '--quiet', container, CERTIFICATES, CERTIFICATES)
    await this.#buildah('config', '--env', `NODE_EXTRA_CA_CERTS=${CERTIFICATES}`, container)
    await this.#buildah('commit', '--quiet', '--rm', container, name)
  }

  /** `docker build -t TAG .` */
  async build(tag: string): Promise<BuiltImage> {
    await this.#buildah(
      'bud',
      '--format',
      'docker',
      '--pull-never',
      '--network',
      'host',
      '--layers=false',
      '--tag',
      tag,
      '--file',
      path.join(ROOT, 'Dockerfile'),
      ROOT,
    )
    const inspected = JSON.parse(await this.#buildah('inspect', '--type', 'image', tag)) as {
      Docker: { config: ImageConfig }
      Manifest: string
    }
    const { layers } = JSON.parse(inspected.Manifest) as { layers: { size: number }[] }
    const container = await this.#buildah('from', '--pull-never', tag)
    const root = await this.#buildah('mount', container)
    // The first layer is the base's.
    const bytes = layers.slice(1).reduce((sum, { size }) => sum + size, 0)
    return new BuiltImage(inspected.Docker.config, root, bytes)
  }

  async #buildah(...words: string[]): Promise<string> {
    const at = (name: string): string => path.join(this.#folder, name)
    const { stdout } = await exec(
      'buildah',
      ['--root', at('root'), '--runroot', at('run'), '--storage-driver', 'vfs', ...words],
      {
        env: { ...process.env, BUILDAH_ISOLATION: 'chroot' },
        timeout: STEP,
        signal: this.#commands.signal,
        maxBuffer: 16 * 1024 * 1024,
      },
    )
    return stdout.trim()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#commands.abort()
    // A command that was cut short may write a little longer.
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 500 })
  }
}

export class BuiltImage {
  readonly config: ImageConfig
  /** What it adds to its base. */
  readonly bytes: number
  readonly #root: string

  constructor(config: ImageConfig, root: string, bytes: number) {
    this.config = config
    this.#root = root
    this.bytes = bytes
  }

  /**
   * `docker run --read-only --network host`: the image's command as its user, in a mount namespace whose root cannot be
   * written. What is mounted is gone with the process.
   */
  run({ user = this.config.User, env = {}, mounts, command = this.config.Cmd }: RunOptions): ChildProcess {
    const root = this.#root
    const binds = mounts.flatMap(({ from, to, readOnly }) => [
      `mkdir -p ${word(root + to)} && mount --bind ${word(from)} ${word(root + to)}`,
      ...(readOnly ? [`mount -o remount,bind,ro ${word(root + to)}`] : []),
    ])
    const variables = [...this.config.Env, ...Object.entries(env).map(([key, value]) => `${key}=${value}`)]
    const script = [
      'set -e',
      `mount --bind ${word(root)} ${word(root)}`,
      ...binds,
      `mount --rbind /dev ${word(`${root}/dev`)}`,
      `mount -t proc proc ${word(`${root}/proc`)}`,
      `mount -o remount,bind,ro ${word(root)}`,
      `exec env -i ${variables.map(word).join(' ')} /usr/sbin/chroot --userspec=${word(user)} ${word(root)} ` +
        `/bin/sh -c 'cd "$0" && exec "$@"' ${[this.config.WorkingDir, ...command].map(word).join(' ')}`,
    ].join('\n')
    return spawn('unshare', ['--mount', '--propagation', 'private', 'bash', '-c', script], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }
}

/** One word of a shell. */
function word(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
