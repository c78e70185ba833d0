import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { HandlerRegistration, Store } from '../../src/core/store.ts'
import { openSqliteStore, type SqliteOptions } from '../../src/sidecar/store/sqlite/store.ts'
import { openPostgresStore } from '../../src/sidecar/store/postgres/store.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'
import { createDatabase } from '../support/postgres.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog } from '../support/ports.ts'

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

/** A store with handlers, closed with the test. */
export async function openStore(
  options: Partial<SqliteOptions> = {},
  handlers: readonly HandlerRegistration[] = [everything('app')],
) {
  const clock = options.clock instanceof VirtualClock ? options.clock : new VirtualClock()
  const log = keepingLog()
  const store: Store =
    process.env['SIDECAR_TEST_STORE'] === 'postgres'
      ? await openPostgresStore(
          { log, ...options, clock, database: { url: await createDatabase() }, random: systemRandom() },
          { now: () => clock.steady(), lease: systemClock() },
        )
      : openSqliteStore({ path: ':memory:', log, ...options, clock })
  onTestFinished(() => store.close())
  await store.settings.registerHandlers(handlers)
  return { store, clock, log }
}
