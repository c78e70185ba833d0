import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const MIGRATIONS = 'src/sidecar/store/postgres/migrations'

export interface FormerProgram {
  commit: string
  /** The number of the last migration that it has. */
  schema: number
}

/**
 * The last commit before the newest migration, which a rolling upgrade replaces; null where the repository has no history, as
 * in an archive of it.
 */
export function formerProgram(): FormerProgram | null {
  const files = readdirSync(path.join(ROOT, MIGRATIONS)).toSorted()
  try {
    const added = git('log', '--diff-filter=A', '--format=%H', '--', `${MIGRATIONS}/${files.at(-1)}`)
    // A migration that is not committed yet: what is committed knows nothing of it.
    const commit = git('rev-parse', '--verify', '--quiet', added === '' ? 'HEAD' : `${added}^`)
    return { commit, schema: files.length - 1 }
  } catch {
    return null
  }
}

/** Puts its source into a new folder, with the packages of this one. Returns what Node runs. */
export function unpack({ commit }: FormerProgram, folder: string): string {
  mkdirSync(folder)
  const archive = execFileSync('git', ['archive', commit, 'src', 'config', 'package.json'], {
    cwd: ROOT,
    maxBuffer: 1 << 28,
  })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  symlinkSync(path.join(ROOT, 'node_modules'), path.join(folder, 'node_modules'))
  return path.join(folder, 'src/main.js')
}

function git(...words: string[]): string {
  return execFileSync('git', words, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()
}
