import { realpathSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Environment } from '../sidecar/config/expand.ts'

/**
 * The folder in which `npm start` was called. npm runs a script in the folder of its package, so
 * `npm --prefix repo start -- check -c sidecar.yaml` would read `repo/sidecar.yaml`. If another npm
 * package runs this program, the same variables are set, but the working directory is right.
 * @returns null when the working directory is the caller's already.
 */
export function callersFolder(env: NodeJS.ProcessEnv, cwd: string): string | null {
  const folder = realOf(env['INIT_CWD'])
  if (folder === null || env['npm_lifecycle_event'] !== 'start') return null
  const own = realOf(fileURLToPath(new URL('../../', import.meta.url)))
  if (own === null || folder === own || realOf(cwd) !== own) return null
  return realOf(env['npm_package_json']) === path.join(own, 'package.json') ? folder : null
}

/** Our messages name commands of the program; in the repository people type `npm start -- check`. */
export function asTyped(text: string, env: Environment): string {
  return env['npm_lifecycle_event'] === 'start' && env['npm_package_name'] === 'agent-session-sidecar'
    ? text.replaceAll(/(?<![\w./-])session-sidecar(?= [[a-z-])/g, 'npm start --')
    : text
}

/** null if there is none. */
function realOf(file: string | undefined): string | null {
  try {
    return file === undefined || file === '' ? null : realpathSync(file)
  } catch {
    return null
  }
}
