import { hostname } from 'node:os'
import type { Config, DatabaseTls, StoreUrl } from './config/config.ts'
import { strandedStore } from './config/store-folder.ts'
import type { Observer, StoreRefusal } from '../core/observer.ts'
import type { Clock, Log, Random } from '../std/ports.ts'
import type { Store } from '../core/store.ts'
import { StoreError } from '../core/store-error.ts'
import { isOfAnother } from './past.ts'
import type { DatabaseAddress } from './store/postgres/database.ts'
import { openSqliteStore } from './store/sqlite/store.ts'
import { identifyProcess, isGone } from '../system/process.ts'
import { VERSION } from './version.ts'

export interface StorePorts {
  clock: Clock
  log: Log
  random: Random
  /** The password of the database. It is read at each connection, because its file may change. */
  password: () => string | null
  /** The fingerprint of the configuration, which other replicas compare with theirs. */
  fingerprint: string
}

/**
 * Opens the store that the configuration names.
 * @throws {OperatorError} when the store cannot be used.
 */
export async function openStore(
  { store: { url }, service }: Config,
  { clock, log, random, password, fingerprint }: StorePorts,
  observer: Observer,
  onLost: (error: StoreError) => void,
): Promise<Store> {
  const reports = {
    onLost,
    onCommit: observer.commit,
    onRefused: (error: unknown) => observer.storeRefused(refusalOf(error)),
    onDeadLettered: observer.deadLettered,
  }
  if (url.kind === 'postgres') {
    const { openPostgresStore } = await import('./store/postgres/store.ts')
    const database = addressOf(url, password)
    const options = { database, clock, log, random, ...reports }
    const appearance = {
      name: hostname(),
      version: VERSION,
      configuration: fingerprint,
      process: { identify: identifyProcess, isGone },
      onRenewal: observer.leaseRenewed,
    }
    return await openPostgresStore(options, {}, appearance)
  }
  const stranded = strandedStore(url, (file) => isOfAnother(file, service.baseUrl))
  if (stranded !== null) throw stranded
  return openSqliteStore({ path: url.path, clock, log, ...reports })
}

/** The address of a PostgreSQL database, in the form that its store expects. */
export function addressOf(
  url: Extract<StoreUrl, { kind: 'postgres' }>,
  password: () => string | null = () => url.password,
): DatabaseAddress {
  return { url: url.url, password, ssl: url.tls === null ? false : sslOf(url.tls) }
}

function sslOf({ checked, ca, cert, key }: DatabaseTls): NonNullable<DatabaseAddress['ssl']> {
  return {
    rejectUnauthorized: checked !== 'nothing',
    ...(checked === 'authority' ? { checkServerIdentity: () => undefined } : {}),
    ...(ca === null ? {} : { ca }),
    ...(cert === null || key === null ? {} : { cert, key }),
  }
}

export function refusalOf(error: unknown): StoreRefusal {
  return error instanceof StoreError && error.kind !== 'closed' ? error.kind : 'other'
}
