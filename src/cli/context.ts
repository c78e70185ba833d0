import type { Environment } from '../sidecar/config/expand.ts'
import type { Terminal } from './terminal.ts'

/** The context that every command gets beside its options. */
export interface Context {
  terminal: Terminal
  env: Environment
}

export type Run<O> = (context: Context, options: O, args: string[]) => Promise<number>
