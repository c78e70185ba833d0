import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../readme/document.ts'

const run = promisify(execFile)
/** What the build reads and what the package holds beside it. */
const SOURCES = [
  'package.json',
  'tsconfig.json',
  '.rolldown.config.ts',
  'src',
  'config',
  'README.md',
  'test/README.md',
  'CHANGELOG.md',
  'LICENSE',
]

/** What the examples of the documents use beside the package. */
const OF_EXAMPLES = ['zod', '@opentelemetry/api', '@opentelemetry/sdk-trace-base']

export interface Packed {
  tarball: string
  /** As `npm install` leaves it: the package in `node_modules`, its dependencies beside it. */
  folder: string
  installed: string
  /** Paths in the package, with bytes. */
  files: { path: string; size: number }[]
  /** Bytes. */
  size: number
  unpackedSize: number
  remove(): Promise<void>
}

/**
 * Builds and packs in a copy, so that an existing `dist` has no effect, and unpacks it as an
 * install would.
 */
export async function pack(): Promise<Packed> {
  const folder = await mkdtemp(path.join(tmpdir(), 'package-'))
  const build = path.join(folder, 'build')
  const modules = path.join(folder, 'node_modules')
  const installed = path.join(modules, 'agent-session-sidecar')
  await mkdir(installed, { recursive: true })
  for (const name of SOURCES) await cp(path.join(ROOT, name), path.join(build, name), { recursive: true })
  await symlink(path.join(ROOT, 'node_modules'), path.join(build, 'node_modules'))
  const { stdout } = await run('npm', ['run', '--silent', 'package', '--', '--json'], { cwd: build })
  const [report] = JSON.parse(stdout) as [
    Pick<Packed, 'files' | 'size' | 'unpackedSize'> & { filename: string },
  ]
  const tarball = path.join(build, report.filename)
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed])
  for (const name of [...(await dependencies()), ...OF_EXAMPLES, '@types'])
    await link(path.join(ROOT, 'node_modules', name), path.join(modules, name))
  const { files, size, unpackedSize } = report
  const remove = () => rm(folder, { recursive: true, force: true })
  return { tarball, folder, installed, files, size, unpackedSize, remove }
}

async function dependencies(): Promise<string[]> {
  const { default: manifest } = await import('../../package.json', { with: { type: 'json' } })
  return Object.keys(manifest.dependencies)
}

async function link(from: string, to: string): Promise<void> {
  await mkdir(path.dirname(to), { recursive: true })
  await symlink(from, to)
}
