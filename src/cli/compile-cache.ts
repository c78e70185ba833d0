import { lstatSync, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'

/**
 * A folder for compiled code, by which a later start is faster; null where there is none that is ours alone, and then it
 * is as it was. Node's own choice is below `/tmp`, and it runs what it finds there, whichever user wrote it.
 */
export function compileCache(env: NodeJS.ProcessEnv): string | null {
  try {
    const given = env['XDG_CACHE_HOME'] ?? ''
    const base = path.isAbsolute(given) ? given : path.join(homedir(), '.cache')
    const folder = path.join(base, 'agent-session-sidecar')
    for (const part of [base, folder]) if (!isOurs(part)) return null
    return folder
  } catch {
    return null
  }
}

/** Whether nobody else may write there; it is made where it is missing. */
function isOurs(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false })
  if (found === undefined) {
    mkdirSync(folder, { mode: 0o700 })
    return isOurs(folder)
  }
  return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0
}
