import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { ENGINE } from '../support/full.ts'
import { namesOf, OF_A_FILE } from './engines.ts'

const textOf = (name: string): string =>
  readFileSync(path.join(import.meta.dirname, `${name}.test.ts`), 'utf8')

test('each file runs on each engine, except those about the file of SQLite', () => {
  const names = namesOf()
  expect(names.length).toBeGreaterThan(24)
  expect(OF_A_FILE.filter((name) => !names.includes(name))).toEqual([])
  const others = names.filter((name) => !OF_A_FILE.includes(name))
  // Nothing in them opens the file of a store, or chooses an engine.
  expect(others.filter((name) => /better-sqlite3|sqlite:|ENGINE/.test(textOf(name)))).toEqual([])
  expect(ENGINE).toBe('SQLite')
})
