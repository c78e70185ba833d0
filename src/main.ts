#!/usr/bin/env node
import { enableCompileCache } from 'node:module'

// A later start is faster and smaller by what compiling costs; without a folder to write to it is as it was.
enableCompileCache()

const { runProgram } = await import('./cli/program.ts')
const { processTerminal } = await import('./cli/terminal.ts')

process.exitCode = await runProgram(process.argv.slice(2), processTerminal(process), process.env)
