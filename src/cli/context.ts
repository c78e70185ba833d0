import type { Environment } from '../config/expand.ts'
import type { Terminal } from './terminal.ts'

/** What every command is handed beside its options. */
export interface Context {
  terminal: Terminal
  env: Environment
}
