import type { Command } from 'commander'
import type { Environment } from '../sidecar/config/expand.ts'
import type { Terminal } from './terminal.ts'

/** The context that every command gets beside its options. */
export interface Context {
  terminal: Terminal
  env: Environment
}

export type Run<O> = (context: Context, options: O, args: string[]) => Promise<number>

/** Binds a declared command to its function, which is imported when needed. */
export type Does = <O extends object>(
  command: Command,
  load: () => Promise<Run<O>>,
  required?: string[],
) => void
