#!/usr/bin/env node
// JavaScript: before the first line of a TypeScript file Node loads a compiler, for as long as its own start takes. What is
// imported below comes out of the cache of compiled code.
import { lstatSync, mkdirSync } from 'node:fs'
import module from 'node:module'
import { homedir } from 'node:os'
import path from 'node:path'

const OLDEST = 24
/** Milliseconds for what else is under way. */
const LINGER = 1000

if (Number.parseInt(process.versions.node) < OLDEST) {
  process.stderr.write(
    `error: session-sidecar needs Node ${OLDEST} or newer; this is ${process.version} (${process.execPath})\n` +
      `  fix: install Node ${OLDEST} from https://nodejs.org; in the repository, npm ci installs it on Linux, and npm start uses it\n`,
  )
  process.exit(2)
}

const cache = compileCache(process.env['XDG_CACHE_HOME'] ?? '')
if (cache !== null) module.enableCompileCache(cache)

// Half of these threads may ask for names at once. With the usual four, two names whose DNS server does not answer were enough to
// delay all others.
process.env['UV_THREADPOOL_SIZE'] ??= '16'

const { main } = await import('./cli/program.ts')
await main(process)
// A slow reader gets all of it.
await new Promise((resolve) => process.stdout.write('', resolve))
// A module of the user's may hold on to a timer or a pool: the caller that stopped the program waits for it to end.
setTimeout(() => process.exit(), LINGER).unref()

/**
 * A folder for compiled code, by which a later start is faster; null where there is none that is ours alone, and then code is
 * compiled at every start. Node's own choice is below `/tmp`, and it runs what it finds there, whichever user wrote it.
 * @param {string} given
 */
function compileCache(given) {
  try {
    const base = path.isAbsolute(given) ? given : path.join(homedir(), '.cache')
    const folder = path.join(base, 'agent-session-sidecar')
    return isOurs(base) && isOurs(folder) ? folder : null
  } catch {
    return null
  }
}

/**
 * Whether only this user may write there. Creates the folder if it is missing.
 * @param {string} folder
 * @returns {boolean}
 */
function isOurs(folder) {
  const found = lstatSync(folder, { throwIfNoEntry: false })
  if (found === undefined) {
    mkdirSync(folder, { mode: 0o700 })
    return isOurs(folder)
  }
  return found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o022) === 0
}
