import { readFileSync } from 'node:fs'
import type { Context } from './context.ts'

/**
 * Generated from the schema by `npm run schema:config`, so that it can be printed without building
 * it.
 */
const SCHEMA = new URL('../../config/schema.json', import.meta.url)

export function schema({ terminal }: Context): Promise<number> {
  terminal.out(readFileSync(SCHEMA, 'utf8'))
  return Promise.resolve(0)
}

export async function print(
  { terminal, env }: Context,
  options: { config: string; json?: boolean },
): Promise<number> {
  const [{ loadConfig }, { printConfig }, { renderFault }, { parse }] = await Promise.all([
    import('../sidecar/config/load.ts'),
    import('../sidecar/config/print.ts'),
    import('../sidecar/config/fault.ts'),
    import('yaml'),
  ])
  const loaded = await loadConfig(options.config, env, Date.now())
  const text = printConfig(loaded)
  terminal.out(options.json === true ? `${JSON.stringify(parse(text), null, 2)}\n` : text)
  for (const warning of loaded.warnings) {
    terminal.err(`${terminal.paintErr('yellow', 'warning:')} ${renderFault(warning)}\n`)
  }
  return 0
}
