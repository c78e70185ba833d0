import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { rulesOfRepository } from '../contract/coverage.ts'

const ROOT = join(import.meta.dirname, '../..')
const TEXT = /\.(ts|js|json|jsonl|md|css|html|sql|sh|py|ya?ml)$/
/** This file names what it forbids. */
const SELF = 'test/house/words.test.ts'

/** Text files below `folders`, and those named. */
function texts(...names: readonly string[]): { path: string; text: string }[] {
  return names
    .flatMap((name) =>
      TEXT.test(name)
        ? [name]
        : readdirSync(join(ROOT, name), { recursive: true, encoding: 'utf8' })
            .filter((file) => TEXT.test(file))
            .map((file) => `${name}/${file.replaceAll('\\', '/')}`),
    )
    .filter((path) => path !== SELF)
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))
}

/** Where `pattern` stands, as `path:line: match`. */
function found(files: readonly { path: string; text: string }[], pattern: RegExp): string[] {
  return files.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, index) =>
        [...line.matchAll(pattern)].map(([match]) => `${path}:${index + 1}: ${match}`),
      ),
  )
}

describe('what comments cite', () => {
  const files = texts('src', 'test')

  it('is in the repository', () => {
    expect(files.length).toBeGreaterThan(900)
    expect(
      found(files, /\b(interface|product|reliability|architecture|glossary|conventions)\.md\b/g),
    ).toEqual([])
  })

  it('is a rule of the rule list, where it looks like one', () => {
    const ids = new Set(rulesOfRepository().map(({ id }) => id))
    const prefixes = [...new Set([...ids].map((id) => id.slice(0, 3)))].join('|')
    const cited = found(files, new RegExp(`\\b(?:${prefixes})-\\d+\\b(?!\\$\\{)`, 'g'))
    expect(cited.length).toBeGreaterThan(1000)
    expect(cited.filter((citation) => !ids.has(citation.split(': ')[1] ?? ''))).toEqual([])
  })
})
