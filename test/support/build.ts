import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = new URL('../../', import.meta.url)
/** Where `buildOnce` leaves its build for the workers. */
const BUILT = 'SIDECAR_TESTED_BUILD'

/** The program as files: what is run, and what is imported. */
export interface Build {
  main: string
  library: string
}

/** What runs as the program under test. `build` makes it first. */
export function programOf(kind: 'build' | 'built' | 'source'): Build {
  if (kind === 'build') execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: 'inherit' })
  const [folder, ending] = kind === 'source' ? ['src', 'ts'] : ['dist', 'js']
  const file = (name: string): string => fileURLToPath(new URL(`${folder}/${name}.${ending}`, ROOT))
  return { main: fileURLToPath(new URL(`${folder}/main.js`, ROOT)), library: file('index') }
}

/** The program that tests start as a process: the bundle that `buildOnce` made, or the source. A start of the bundle takes a third of the time. */
export function programUnderTest(): Build {
  const folder = process.env[BUILT]
  if (folder === undefined) return programOf('source')
  return { main: path.join(folder, 'dist/main.js'), library: path.join(folder, 'dist/index.js') }
}

/** Bundles the source for all test files together, unless an earlier run of the tests bundled the same. */
export function buildOnce(): void {
  const root = fileURLToPath(ROOT)
  const modules = path.join(root, 'node_modules')
  // A copy with a planted bug borrows its packages: each is tested once, from its source.
  if (lstatSync(modules).isSymbolicLink()) return void delete process.env[BUILT]
  const files = globSync(['src/**/*.*', 'config/**/*.*', '.rolldown.config.ts', 'package-lock.json'], {
    cwd: root,
  })
  const texts = files.toSorted().map((file) => `${file} ${readFileSync(path.join(root, file), 'latin1')}`)
  const builds = path.join(modules, '.cache/agent-session-sidecar')
  const folder = path.join(builds, hash('sha256', texts.join()).slice(0, 16))
  if (!existsSync(folder)) {
    for (const old of globSync('*', { cwd: builds })) removeOld(path.join(builds, old))
    bundle(root, folder)
  }
  process.env[BUILT] = folder
}

/** Milliseconds: longer than tests run that may use it. */
const KEPT = 3_600_000

function removeOld(folder: string): void {
  if (statSync(folder).mtimeMs < Date.now() - KEPT) rmSync(folder, { recursive: true })
}

function bundle(root: string, folder: string): void {
  mkdirSync(path.dirname(folder), { recursive: true })
  const made = mkdtempSync(`${folder}-`)
  for (const beside of ['config', 'package.json'])
    symlinkSync(path.join(root, beside), path.join(made, beside))
  const env = { ...process.env, DIST: path.join(made, 'dist') }
  const rolldown = ['rolldown', '-c', '.rolldown.config.ts', '--log-level', 'silent']
  execFileSync('npx', rolldown, { cwd: root, env, stdio: ['ignore', 'ignore', 'inherit'] })
  try {
    renameSync(made, folder)
  } catch {
    // Another run of the tests was faster.
    rmSync(made, { recursive: true })
  }
}
