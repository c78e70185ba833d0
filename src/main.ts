#!/usr/bin/env node
import module from 'node:module'

const OLDEST = 24

if (Number.parseInt(process.versions.node) < OLDEST) {
  process.stderr.write(
    `session-sidecar needs Node ${OLDEST} or newer; this is ${process.version} (${process.execPath}).\n`,
  )
  process.exit(2)
}

const { compileCache } = await import('./cli/compile-cache.ts')
const cache = compileCache(process.env)
if (cache !== null) module.enableCompileCache(cache)

const { callersFolder } = await import('./cli/working-folder.ts')
const called = callersFolder(process.env, process.cwd())
if (called !== null) process.chdir(called)

const { runProgram } = await import('./cli/program.ts')
const { processTerminal } = await import('./cli/terminal.ts')

/** Milliseconds for what else is under way. */
const LINGER = 1000

process.exitCode = await runProgram(process.argv.slice(2), processTerminal(process), process.env)
// A slow reader gets all of it.
await new Promise((resolve) => process.stdout.write('', resolve))
// A module of the user's may hold on to a timer or a pool: the caller that stopped the program waits for it to end.
setTimeout(() => process.exit(), LINGER).unref()
