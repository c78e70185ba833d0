import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { HandlerRegistration, Store } from '../../src/core/store.ts'
import { openSqliteStore, type SqliteOptions } from '../../src/sidecar/store/sqlite/store.ts'
import { openPostgresStore } from '../../src/sidecar/store/postgres/store.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog } from '../support/ports.ts'
import { databaseAt, isPostgres } from './engines.ts'

/** A folder that goes with the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'sidecar-store-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

export const everything = (name: string, more: Partial<HandlerRegistration> = {}): HandlerRegistration => ({
  name,
  ordered: true,
  events: ['*'],
  ...more,
})

/** `dueBy`: the clock on which work is due; a store in PostgreSQL outside of tests has that of the database. */
type Options = Partial<SqliteOptions> & { dueBy?: 'clock' | 'database' }

/** A store on the engine under test, closed with the test. */
export async function openBare({ path = ':memory:', dueBy = 'clock', ...options }: Options = {}) {
  const clock = options.clock instanceof VirtualClock ? options.clock : new VirtualClock()
  const log = keepingLog()
  const store: Store = isPostgres()
    ? await openPostgresStore(
        { log, ...options, clock, database: { url: await databaseAt(path) }, random: systemRandom() },
        { lease: systemClock(), ...(dueBy === 'clock' ? { now: () => clock.steady() } : {}) },
      )
    : openSqliteStore({ path, log, ...options, clock })
  onTestFinished(() => store.close())
  await store.shards.join()
  return { store, clock, log }
}

/** As `openBare`, with handlers. */
export async function openStore(
  options: Options = {},
  handlers: readonly HandlerRegistration[] = [everything('app')],
) {
  const opened = await openBare(options)
  await opened.store.settings.registerHandlers(handlers)
  return opened
}
