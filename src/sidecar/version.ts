import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The version of the package that this file is part of. */
export const VERSION = readVersion()

function readVersion(): string {
  const file = fileURLToPath(new URL('../../package.json', import.meta.url))
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
  return typeof value === 'object' && value !== null && 'version' in value ? String(value.version) : 'unknown'
}
