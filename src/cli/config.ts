import { parse } from 'yaml'
import { loadConfig } from '../config/load.ts'
import { renderFault } from '../config/fault.ts'
import { printConfig } from '../config/print.ts'
import { jsonSchema } from '../config/schema.ts'
import type { Context } from './context.ts'

export function schema({ terminal }: Context): Promise<number> {
  terminal.out(`${JSON.stringify(jsonSchema(), null, 2)}\n`)
  return Promise.resolve(0)
}

export async function print(
  { terminal, env }: Context,
  options: { config: string; json?: boolean },
): Promise<number> {
  const loaded = await loadConfig(options.config, env, Date.now())
  const text = printConfig(loaded)
  terminal.out(options.json === true ? `${JSON.stringify(parse(text), null, 2)}\n` : text)
  for (const warning of loaded.warnings) {
    terminal.err(`${terminal.paintErr('yellow', 'warning:')} ${renderFault(warning)}\n`)
  }
  return 0
}
