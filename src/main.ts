#!/usr/bin/env node
import { runProgram } from './cli/program.ts'
import { processTerminal } from './cli/terminal.ts'

process.exitCode = await runProgram(process.argv.slice(2), processTerminal(process), process.env)
