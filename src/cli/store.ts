import type { StoreUrl } from '../sidecar/config/config.ts'
import { loadSection } from '../sidecar/config/load.ts'
import { strandedStore } from '../sidecar/config/store-folder.ts'
import { OperatorError } from '../std/errors.ts'
import { backupStore } from '../sidecar/store/sqlite/backup.ts'
import type { Progress } from '../sidecar/store/sqlite/copy.ts'
import { inspectStore, type Inspection } from '../sidecar/store/sqlite/inspect.ts'
import { restoreStore, type Restored } from '../sidecar/store/sqlite/restore.ts'
import type { Context } from './context.ts'
import { jsonLine, visible, type Terminal } from './terminal.ts'
import { count, size } from './text.ts'

interface Options {
  config: string
  json?: boolean
}

/** Reads the whole store and prints its faults; exit 1 if there are any. */
export async function checkStore({ terminal, env }: Context, options: Options): Promise<number> {
  const url = await urlOf(options, env)
  const inspection = url.kind === 'postgres' ? await inspectIn(url) : inspectStore(pathOf(url, 'check'))
  if (options.json === true) terminal.out(jsonLine(inspection))
  else {
    terminal.out(`${summary(inspection)}\n`)
    for (const problem of inspection.problems)
      terminal.out(`${terminal.paint('red', '✗')} ${visible(problem)}\n`)
    terminal.out(
      inspection.problems.length === 0
        ? `${terminal.paint('green', '✓')} sound: every fact is as it was written\n`
        : `Restore a backup${url.kind === 'sqlite' ? ', or move the file to start with an empty store' : ''}. ` +
            'A damaged fact is never delivered: its deliveries become dead letters.\n',
    )
  }
  return inspection.problems.length === 0 ? 0 : 1
}

/** Copies the store, also while a sidecar uses it. */
export async function backup(
  { terminal, env }: Context,
  options: Options,
  [target = '']: string[],
): Promise<number> {
  const source = pathOf(await urlOf(options, env), 'backup')
  const progress = showProgress(terminal)
  const copied = await backupStore(source, target, progress.step)
  progress.end()
  terminal.out(options.json === true ? jsonLine(copied) : `${summary(copied)}\ncopied and checked\n`)
  return 0
}

/** Replaces the store with a copy; no sidecar may use it. */
export async function restore(
  { terminal, env }: Context,
  options: Options,
  [source = '']: string[],
): Promise<number> {
  const target = pathOf(await urlOf(options, env), 'restore')
  const progress = showProgress(terminal)
  const restored = await restoreStore(source, target, { now: Date.now(), onProgress: progress.step })
  progress.end()
  terminal.out(options.json === true ? jsonLine(restored) : report(restored))
  return 0
}

function report(restored: Restored): string {
  const { from, kept, keptLog, writtenAt } = restored
  const time = writtenAt === null ? 'which is empty' : `last written ${new Date(writtenAt).toISOString()}`
  return (
    `${summary(restored)}\nrestored from ${from}, ${time}, and checked\n` +
    (kept === null ? '' : `the former database is kept: ${kept}\n`) +
    (keptLog === null ? '' : `there was no database, only its write-ahead log, which is kept: ${keptLog}\n`) +
    'Facts that are newer than the copy are made again, with the same ids, if the service still shows them: ' +
    'handlers may get facts twice.\nA function call that is still open, and that was run after the copy was made, is run again.\n'
  )
}

/** Progress for people: percent, in one line. */
export function showProgress(terminal: Terminal): { step: Progress; end: () => void } {
  let shown = 0
  return {
    step({ done, total }) {
      const percent = total === 0 ? 0 : Math.floor((100 * done) / total)
      if (terminal.width === null || percent <= shown) return
      shown = percent
      terminal.err(`\rcopying: ${percent} %`)
    },
    end() {
      if (shown > 0) terminal.err('\r')
    },
  }
}

async function urlOf({ config: file }: Options, env: Context['env']): Promise<StoreUrl> {
  const { url } = await loadSection(file, env, 'store')
  const stranded = strandedStore(url)
  if (stranded !== null) throw stranded
  return url
}

/** What to run instead of each command for a database of PostgreSQL. */
const OF_DATABASE = {
  backup: 'pg_dump --format=custom --schema=sidecar --file=FILE DATABASE',
  restore: 'stop the sidecars, then: pg_restore --clean --if-exists --dbname=DATABASE FILE',
}

function pathOf(url: StoreUrl, command: 'check' | keyof typeof OF_DATABASE): string {
  if (url.kind === 'sqlite' && url.path !== ':memory:') return url.path
  if (url.kind === 'sqlite' || command === 'check')
    throw new OperatorError(
      `store ${command}: store.url is sqlite::memory:, which is not a file`,
      2,
      'set store.url to a file',
    )
  throw new OperatorError(`store ${command}: ${url.url} is a database of PostgreSQL`, 2, OF_DATABASE[command])
}

async function inspectIn(url: Extract<StoreUrl, { kind: 'postgres' }>): Promise<Inspection> {
  const { inspectDatabase } = await import('../sidecar/store/postgres/inspect.ts')
  const { addressOf } = await import('../sidecar/store.ts')
  const found = await inspectDatabase(addressOf(url))
  return { ...found, file: found.url, writtenAt: null }
}

function summary(store: Inspection): string {
  const { file, bytes, schema, newest, facts, pending, dead, openCalls, cursor } = store
  const older = schema < newest ? ` (the next start of this program migrates it to ${newest})` : ''
  return (
    `${file}: ${size(bytes)}, schema ${schema}${older}\n` +
    `${count(facts, 'fact')}, ${count(pending, 'pending delivery', 'pending deliveries')}, ${count(dead, 'dead letter')}, ` +
    `${count(openCalls, 'open call')}, stream cursor ${cursor ?? 'none'}`
  )
}
