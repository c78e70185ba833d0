import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readdir, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { request } from 'undici'
import { expect, test } from 'vitest'
import { generated, squeezed } from '../readme/document.ts'
import { freePort } from '../support/listen.ts'
import { until } from '../support/until.ts'
import { command, healthCheck, instruction } from './documents.ts'
import { measure, replay } from './replay.ts'

/** Two installs and a build take a minute or more, and the registry: not for every run. */
const wanted = process.env['REPLAY_DOCKERFILE'] === '1'
if (!wanted)
  process.stderr.write('deployment: the steps of the Dockerfile are NOT replayed; REPLAY_DOCKERFILE=1 does\n')

test.skipIf(!wanted)(
  'the steps of the Dockerfile make a program that runs as its user and writes in its folder alone',
  { timeout: 400_000 },
  async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'image-'))
    try {
      await chmod(folder, 0o755)
      const app = path.join(await replay(folder), 'app')
      expect((await readdir(app)).sort()).toEqual([
        'LICENSE',
        'bin',
        'config',
        'data',
        'dist',
        'node_modules',
        'package.json',
      ])
      expect(await realpath(path.join(app, 'bin/session-sidecar'))).toBe(
        await realpath(path.join(app, 'dist/main.js')),
      )
      await runsIn(app, folder)
      const wantedTable = await inventory(app)
      expect(generated('install', wantedTable)).toBe(squeezed(wantedTable))
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
)

async function runsIn(app: string, folder: string): Promise<void> {
  const port = await freePort()
  const file = path.join(folder, 'sidecar.yaml')
  await writeFile(file, 'service: { base_url: "http://127.0.0.1:9", token: svc_pat_x }\n')
  const [uid = 0, gid = 0] = instruction('USER').split(':').map(Number)
  // Only root may become another user; others own the folder and test the rest.
  const user = process.getuid?.() === 0 ? { uid, gid } : {}
  const env = {
    PATH: process.env['PATH'],
    SIDECAR_ADMIN__LISTEN: `127.0.0.1:${port}`,
    SIDECAR_STORE_BASE: app,
    NODE_ENV: 'production',
  }
  const [program = '', ...args] = command().map((word) => (word.startsWith('/etc/') ? file : word))
  const child = spawn(program, args, { cwd: app, env, stdio: 'ignore', ...user })
  const ended = new Promise((resolve) => child.once('close', resolve))
  try {
    await until(
      'answer',
      async () => {
        const answer = await request(`http://127.0.0.1:${port}/readyz`).catch(() => null)
        await answer?.body.dump()
        return answer?.statusCode === 200
      },
      30_000,
    )
    const [check = '', ...words] = healthCheck()
    expect(await new Promise((resolve) => spawn(check, words, { env, ...user }).once('close', resolve))).toBe(
      0,
    )
    expect((await stat(path.join(app, 'data/sidecar.db'))).uid).toBe(user.uid ?? process.getuid?.())
  } finally {
    child.kill('SIGTERM')
  }
  expect(await ended).toBe(0)
}

/** What is installed, the largest first; what is below a quarter of a megabyte in one line. */
async function inventory(app: string): Promise<string> {
  const modules = path.join(app, 'node_modules')
  const packages: { name: string; bytes: number }[] = []
  for (const name of await readdir(modules)) {
    if (name.startsWith('.')) continue
    const inside = name.startsWith('@') ? await readdir(path.join(modules, name)) : ['']
    for (const one of inside)
      packages.push({ name: path.posix.join(name, one), ...(await measure(path.join(modules, name, one))) })
  }
  packages.sort((a, b) => b.bytes - a.bytes)
  const small = packages.filter(({ bytes }) => bytes < 250_000)
  const total = (rows: { bytes: number }[]) => ({ bytes: rows.reduce((sum, row) => sum + row.bytes, 0) })
  const rows = [
    { name: '`dist`', ...(await measure(path.join(app, 'dist'))) },
    ...packages.filter((one) => !small.includes(one)).map((one) => ({ ...one, name: `\`${one.name}\`` })),
    { name: `${small.length} smaller packages`, ...total(small) },
  ]
  const line = ({ name, bytes }: { name: string; bytes: number }): string =>
    `| ${name} | ${(bytes / 1e6).toFixed(1)} MB |`
  const lines = [...rows, { name: 'all', ...total(rows) }].map(line)
  return `\n| what | size |\n|---|---|\n${lines.join('\n')}\n\n`
}
