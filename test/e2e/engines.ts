import { readdirSync } from 'node:fs'
import { ENGINE, FULL, PROFILES as ALL, RELEASE, type ProfileName } from '../support/full.ts'

/** Files about SQLite's file, by name: what operators do to it, and copies of it. All others run with a database of PostgreSQL as well. */
export const OF_A_FILE = ['copy', 'engines', 'operator']
/** What a person waits for: the answers of handlers. */
const QUICK = ['answer']

/** The names of the files of test/e2e, without `.test.ts`. */
export function namesOf(): string[] {
  return readdirSync(import.meta.dirname).flatMap((file) => /^(.*)\.test\.ts$/.exec(file)?.[1] ?? [])
}

/** The files that run a second time, with a database. */
export function onPostgres(): string[] {
  const names = FULL ? namesOf().filter((name) => !OF_A_FILE.includes(name)) : QUICK
  return names.map((name) => `test/e2e/${name}.test.ts`)
}

/**
 * The profiles with which a test runs on this engine. Neither engine knows anything of the profiles, so CI tries one with
 * each; a file of OF_A_FILE runs on one engine only.
 */
export const PROFILES: readonly ProfileName[] = RELEASE || !FULL ? ALL : [ENGINE === 'PostgreSQL' ? 'b' : 'a']
