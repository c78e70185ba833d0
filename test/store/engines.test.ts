import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

/**
 * Files that compare the engines or copy between them, and files about one engine: SQLite's file, log, lock, plans and
 * schema, PostgreSQL's connections, statements, pooler, leases and replicas.
 */
const OF_A_FILE = [
  'backlog.test.ts',
  'backup.test.ts',
  'copy.test.ts',
  'counts.test.ts',
  'differential.test.ts',
  'engines.test.ts',
  'inspect.test.ts',
  'log.test.ts',
  'open.test.ts',
  'ownership.test.ts',
  'plan.test.ts',
  'pooler.test.ts',
  'postgres.test.ts',
  'replicas.test.ts',
  'statements.test.ts',
  'upgrade.test.ts',
]

/** In the other files: tests about a full disk, SQLite's thread, its lock, its list of facts, or a clock of the process. */
const BESIDE: Record<string, number> = {
  'commit.test.ts': 6,
  'scan.test.ts': 2,
  'session-facts.test.ts': 3,
  'state.test.ts': 2,
  'time.test.ts': 2,
}

const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.ts'))
const textOf = (name: string): string => readFileSync(join(import.meta.dirname, name), 'utf8')
const count = (text: string, pattern: RegExp): number => [...text.matchAll(pattern)].length

it('runs each test of the port on each engine', () => {
  const ofAFile = files.filter(
    (name) => !/^import \{[^}]*\bit\b[^}]*\} from '\.\/engines\.ts'/m.test(textOf(name)),
  )
  expect(ofAFile).toEqual(OF_A_FILE.toSorted())
  const others = files.filter((name) => !OF_A_FILE.includes(name))
  expect(others.length).toBeGreaterThan(8)
  expect(others.filter((name) => /\bit\b[^\n]* from 'vitest'/.test(textOf(name)))).toEqual([])
  const beside = others.map((name) => [name, count(textOf(name), /\bit\.file\(/g)])
  expect(Object.fromEntries(beside.filter(([, left]) => left !== 0))).toEqual(BESIDE)
})
