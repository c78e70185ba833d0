import { Client } from 'pg'
import { onTestFinished } from 'vitest'
import type { StoreError } from '../../src/core/store-error.ts'
import type { Store } from '../../src/core/store.ts'
import { openPostgresStore, type Appearance } from '../../src/sidecar/store/postgres/store.ts'
import type { Clock } from '../../src/std/ports.ts'
import { systemClock } from '../../src/system/clock.ts'
import { systemRandom } from '../../src/system/random.ts'
import { keepingLog } from '../support/ports.ts'

/** A process on a database. `lease`: a clock that stands still stops its renewals and its looks, as when it is frozen. */
export async function openProcess(
  url: string,
  lease: Clock = systemClock(),
  appearance: Appearance = {},
): Promise<{
  store: Store
  lost: StoreError[]
  log: ReturnType<typeof keepingLog>
  /** Seconds of each transaction. */
  commits: number[]
}> {
  const lost: StoreError[] = []
  const commits: number[] = []
  const log = keepingLog()
  const store = await openPostgresStore(
    {
      database: { url },
      clock: systemClock(),
      log,
      random: systemRandom(),
      onLost: (error) => lost.push(error),
      onCommit: (seconds) => commits.push(seconds),
    },
    { lease },
    appearance,
  )
  onTestFinished(() => store.close())
  return { store, lost, log, commits }
}

/** A connection that is not the store's. */
export async function adminOf(url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  onTestFinished(() => client.end().catch(() => undefined))
  return client
}
