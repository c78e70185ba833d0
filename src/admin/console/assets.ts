import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Asset {
  body: Buffer
  type: string
  /** Of the content: a browser asks each time, and gets a file again only after an upgrade. */
  etag: string
}

const WEB = join(import.meta.dirname, 'web')

/** Libraries as their packages ship them, under names of ours. */
const LIBRARIES: Readonly<Record<string, string>> = {
  'vendor/preact.js': 'preact',
  'vendor/hooks.js': 'preact/hooks',
  'vendor/htm.js': 'htm',
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The console's files by name. Read once: they are few, and change only with an upgrade. */
export function readAssets(): Map<string, Asset> {
  const own = readdirSync(WEB).map((name) => [name, readFileSync(join(WEB, name))] as const)
  const libraries = Object.entries(LIBRARIES).map(([name, library]) => [name, readLibrary(library)] as const)
  return new Map(
    [...own, ...libraries].flatMap(([name, body]) => {
      const type = TYPES[extname(name)]
      return type === undefined ? [] : [[name, { body, type, etag: etagOf(body) }] as const]
    }),
  )
}

/** A browser knows no packages, and an import map would have to be inline, which the policy forbids. */
function readLibrary(name: string): Buffer {
  const text = readFileSync(fileURLToPath(import.meta.resolve(name)), 'utf8')
  return Buffer.from(
    text.replaceAll(/(from\s*)"preact"/g, '$1"./preact.js"').replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'),
  )
}

/** A strong validator of `body`. */
export function etagOf(body: string | Buffer): string {
  return `"${hash('sha256', body, 'base64url').slice(0, 22)}"`
}
