import { it as single, onTestFinished } from 'vitest'
import { createDatabase } from '../support/postgres.ts'
import { openTables, type Tables } from '../support/tables.ts'

export const ENGINES = ['SQLite', 'PostgreSQL'] as const
export type Engine = (typeof ENGINES)[number]

/** The engine of the test that runs; tests of a file run one after the other. */
let underTest: Engine = 'SQLite'
/** The databases of the running test, by the path that it would have as a file. */
let databases = new Map<string, Promise<string>>()

export function isPostgres(): boolean {
  return underTest === 'PostgreSQL'
}

async function runOn(engine: Engine, body: () => unknown): Promise<void> {
  underTest = engine
  databases = new Map()
  onTestFinished(() => {
    underTest = 'SQLite'
  })
  await body()
}

/** For a test of both engines, one after the other: `underTest` is one for all. */
export async function on<T>(engine: Engine, body: () => Promise<T>): Promise<T> {
  const before = underTest
  underTest = engine
  try {
    return await body()
  } finally {
    underTest = before
  }
}

/** A test of the store, on each engine. */
function onEach(name: string, body: () => unknown): void {
  for (const engine of ENGINES) single(`${name} (${engine})`, () => runOn(engine, body))
}

/** As vitest's `it`, once for each engine. `file`: about SQLite's file, its thread or its clock, on SQLite alone. */
export const it = Object.assign(onEach, {
  file: single,
  each:
    <T>(cases: readonly T[]) =>
    (name: string, body: (one: T) => unknown): void => {
      for (const engine of ENGINES)
        single.each(cases.map((one) => [one] as const))(`${name} (${engine})`, (one) =>
          runOn(engine, () => body(one)),
        )
    },
})

/** The address of the database that stands for a path: opened twice, it is the same one. */
export function databaseAt(path: string): Promise<string> {
  if (path === ':memory:') return createDatabase()
  const known = databases.get(path)
  if (known !== undefined) return known
  const made = createDatabase()
  databases.set(path, made)
  return made
}

/** The tables of the store that has, or would have, this path. */
export async function tablesOf(path: string): Promise<Tables> {
  const tables = await openTables(isPostgres() ? await databaseAt(path) : `sqlite:${path}`)
  onTestFinished(() => tables.close())
  return tables
}
