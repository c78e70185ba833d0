import { createHash } from 'node:crypto'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

const ROOT = path.join(import.meta.dirname, '../..')
/** What is read while it plays, or stands for all that is not ours. */
const DATA = ['package-lock.json', 'src/sidecar/store/sqlite/migrations/*']
/** Imports, but for those of types alone, which make no difference to a seed. */
const LINK = /^(?:import|export) (?!type\b)[^;]*?from '(\.[^']+)'|^import '(\.[^']+)'/gm
/** The campaign, and what its threads do. */
export const ENTRIES = ['test/simulation/simulate.ts', 'test/simulation/chunk.ts']

/** Files of ours that `entries` load, themselves among them, from the project's root. */
export function sourcesOf(entries: readonly string[]): string[] {
  const found = new Set<string>()
  const open = [...entries]
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (found.has(file)) continue
    found.add(file)
    for (const [, from, plain] of readFileSync(path.join(ROOT, file), 'utf8').matchAll(LINK))
      open.push(path.join(path.dirname(file), from ?? plain ?? ''))
  }
  return [...found].toSorted()
}

/** Of all that can make a difference to a seed. */
export function hashSources(): string {
  const files = [...globSync(DATA, { cwd: ROOT }), ...sourcesOf(ENTRIES)].toSorted()
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${file}\n`).update(readFileSync(path.join(ROOT, file)))
  return hash.digest('hex').slice(0, 16)
}
