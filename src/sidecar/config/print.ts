import { stringify } from 'yaml'
import { isObject } from '../../std/json.ts'
import type { Config } from './config.ts'
import type { Settings } from './schema.ts'
import { secretsIn } from './secrets.ts'
import { settings as schema } from './settings.ts'
import { propertyOf, type Shape } from './shape.ts'

const REDACTED = '[redacted]'

/**
 * A secret of fewer characters is hidden only under its own key. To hide it everywhere would hide parts of ordinary
 * words.
 */
const SHORTEST = 4

/** The effective configuration as YAML. Secrets are hidden by their key, and at every other place by their value. */
export function printConfig(loaded: { settings: Settings; config: Config }): string {
  const values = secretsIn(loaded.config)
    .filter((value) => value.length >= SHORTEST)
    .sort((a, b) => b.length - a.length)
  return stringify(redact(loaded.settings, schema, values), {
    lineWidth: 0,
    aliasDuplicateObjects: false,
  })
}

function redact(value: unknown, shape: Shape | undefined, secrets: readonly string[]): unknown {
  if (shape?.writeOnly === true) return REDACTED
  if (typeof value === 'string') return literal(hide(withoutPassword(value), secrets))
  if (Array.isArray(value)) return value.map((item) => redact(item, shape?.items, secrets))
  if (!isObject(value)) return value
  // In the order of the schema, whatever order the keys came in.
  const known = Object.keys(shape?.properties ?? {}).filter((key) => value[key] !== undefined)
  const keys = new Set([...known, ...Object.keys(value)])
  const entries = [...keys].map((key): [string, unknown] => [
    key,
    redact(value[key], propertyOf(shape, key), secrets),
  ])
  return Object.fromEntries(entries)
}

function hide(text: string, secrets: readonly string[]): string {
  let hidden = text
  for (const secret of secrets) hidden = hidden.replaceAll(secret, () => REDACTED)
  return hidden
}

/** Hides the password in the address of the store, also one that is too short to be hidden by its value. */
function withoutPassword(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/[^/@:]*):[^/@]*@/i, `$1:${REDACTED}@`)
}

/** Escape "${" again, so that the output can be read back. */
function literal(text: string): string {
  return text.replaceAll('${', () => '$${')
}
