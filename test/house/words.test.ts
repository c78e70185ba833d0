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

/** Words that are never right, in prose, in identifiers and in names of files. */
const BANNED = [
  'mend(?:s|ed|ing)?',
  'owe(?:s|d)?',
  'bur(?:y|ies|ied|ying)',
  'errands?',
  'nudg(?:e|es|ed|ing)',
  'pump(?:s|ed|ing)?',
  'passengers?',
  'complain(?:s|ed|ing|ts?)?',
  'whoever',
]

/** Words that are banned as well, except where the interface is quoted. */
const OURS = ['nobody', 'somebody', 'tell(?:s|ing)?', 'told', 'away', 'news']

/** The interface as it states itself; its sentences are not ours. */
const QUOTES = ['src/protocol/rules.md', 'src/conform/catalogue.json', 'test/contract/COVERAGE.md']

/** Each word by itself, and as a part of a name such as `isMended` or `MOST_OWED`. */
function bannedWords(words: readonly string[] = BANNED): RegExp {
  const each = words.flatMap((word) => {
    const capital = (word[0] ?? '').toUpperCase() + word.slice(1)
    return [`(?<![A-Za-z])${word}(?![a-z])`, `${capital}(?![a-z])`]
  })
  const upper = words.map((word) => `(?<![A-Z])${shout(word)}(?![A-Z])`)
  return new RegExp([...each, ...upper].join('|'), 'g')
}

/** The pattern for the word in capitals. */
function shout(word: string): string {
  return word.replaceAll(/[a-z]/g, (letter) => letter.toUpperCase())
}

describe('words that are never right', () => {
  it('are in no source, test, document or configuration', () => {
    const files = texts('src', 'test', 'config', '.github', 'README.md', 'CHANGELOG.md')
    expect(found(files, bannedWords())).toEqual([])
    expect(files.map(({ path }) => path).filter((path) => bannedWords().test(path))).toEqual([])
  })

  it('are in no sentence of ours, where the interface may use them', () => {
    const files = texts('src', 'test', 'config', '.github', 'README.md', 'CHANGELOG.md').filter(
      ({ path }) => !QUOTES.includes(path),
    )
    expect(found(files, bannedWords(OURS))).toEqual([])
    expect(files.map(({ path }) => path).filter((path) => bannedWords(OURS).test(path))).toEqual([])
  })

  it('are found in prose, identifiers and constants, and not in other words', () => {
    const line =
      'Whoever owes; isMended MOST_OWED #owed passengers: amend allowed followed showed umpire recommended'
    expect(found([{ path: 'a', text: line }], bannedWords())).toEqual([
      'a:1: Whoever',
      'a:1: owes',
      'a:1: Mended',
      'a:1: OWED',
      'a:1: owed',
      'a:1: passengers',
    ])
  })
})
