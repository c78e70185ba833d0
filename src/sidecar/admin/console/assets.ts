import { hash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface Asset {
  body: Buffer
  type: string
  etag: string
}

export interface Assets {
  files: ReadonlyMap<string, Asset>
  /** The version of all files together. It is part of their paths, so that a browser may cache them for ever. */
  edition: string
}

const WEB = join(import.meta.dirname, 'web')

/** Libraries from their packages, under our own names. */
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
export function readAssets(): Assets {
  const own = readdirSync(WEB).map((name) => [name, readFileSync(join(WEB, name))] as const)
  const libraries = Object.entries(LIBRARIES).map(([name, library]) => [name, readLibrary(library)] as const)
  const files = new Map(
    [...own, ...libraries].flatMap(([name, body]): [string, Asset][] => {
      const type = TYPES[extname(name)]
      return type === undefined ? [] : [[name, { body, type, etag: etagOf(body) }]]
    }),
  )
  const edition = hash('sha256', [...files.values()].map(({ etag }) => etag).join(''), 'hex').slice(0, 12)
  const page = files.get('index.html')
  if (page !== undefined) {
    page.body = Buffer.from(page.body.toString().replaceAll('="console/', `="console/${edition}/`))
    page.etag = etagOf(page.body)
  }
  return { files, edition }
}

/**
 * A browser cannot resolve the names of packages, so they are replaced by paths. An import map would have to be inline,
 * which the content security policy forbids.
 */
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
