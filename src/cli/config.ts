import { loadConfig } from '../config/load.ts'
import { renderFault } from '../config/fault.ts'
import { printConfig } from '../config/print.ts'
import { jsonSchema } from '../config/schema.ts'
import type { Context } from './context.ts'

export function schema({ terminal }: Context): Promise<number> {
  terminal.out(`${JSON.stringify(jsonSchema(), null, 2)}\n`)
  return Promise.resolve(0)
}

export async function print({ terminal, env }: Context, options: { config: string }): Promise<number> {
  const loaded = await loadConfig(options.config, env, Date.now())
  terminal.out(printConfig(loaded))
  for (const warning of loaded.warnings) {
    terminal.err(`${terminal.paintErr('yellow', 'warning:')} ${renderFault(warning)}\n`)
  }
  return 0
}
