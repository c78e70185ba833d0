import path from 'node:path'
import type { StoreUrl } from '../sidecar/config/config.ts'
import { databaseOf } from '../sidecar/config/database.ts'
import { readSmallFile } from '../sidecar/config/secrets.ts'
import { addressOf } from '../sidecar/store.ts'
import { copyStore, type Copied, type Source, type Target } from '../sidecar/store/copy/copy.ts'
import { StoreError } from '../core/store-error.ts'
import { codeOf, messageOf, OperatorError } from '../std/errors.ts'
import type { Context } from './context.ts'
import { jsonLine } from './terminal.ts'
import { showProgress } from './store.ts'
import { renderTable } from './table.ts'
import { count } from './text.ts'

interface Options {
  from: string
  to: string
  passwordFile?: string
  json?: boolean
}

/** Copies a store into the other engine; no sidecar may use either. */
export async function copy({ terminal, env }: Context, options: Options): Promise<number> {
  const from = await urlOf(options.from, '--from', options, env)
  const to = await urlOf(options.to, '--to', options, env)
  if (from.kind === to.kind)
    throw new OperatorError(
      `store copy: --from and --to are both ${from.kind === 'sqlite' ? 'SQLite' : 'PostgreSQL'}`,
      2,
      from.kind === 'sqlite' ? 'use "session-sidecar store backup"' : 'use pg_dump and pg_restore',
    )
  await using source = await sourceAt(from)
  await using target = await targetAt(to)
  const progress = showProgress(terminal)
  const copied = await copyStore(source.side, target.side, progress.step).catch((error: unknown) => {
    throw interrupted(error)
  })
  progress.end()
  if (options.json === true) terminal.out(jsonLine(copied))
  else report(copied, terminal)
  return 0
}

function report({ from, to, continued, tables }: Copied, terminal: Context['terminal']): void {
  terminal.out(
    renderTable(
      tables,
      [
        { title: 'TABLE', cell: ({ table }) => table },
        { title: 'ROWS', cell: ({ rows }) => String(rows), align: 'right' },
        { title: 'CHECKSUM', cell: ({ checksum }) => checksum },
      ],
      terminal,
    ),
  )
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  terminal.out(
    `copied ${from} to ${to}${continued ? ', after an earlier copy that was interrupted' : ''}: ${count(rows, 'row')}, ` +
      'identical in both\nSet store.url to the copy. The source is unchanged: start no sidecar on it again.\n',
  )
}

interface Opened<T extends Source | Target> extends AsyncDisposable {
  side: T
}

function disposable<T extends Source | Target>(side: T): Opened<T> {
  return { side, [Symbol.asyncDispose]: () => side.close().catch(() => undefined) }
}

async function sourceAt(url: StoreUrl): Promise<Opened<Source>> {
  if (url.kind === 'sqlite') {
    const { openSource } = await import('../sidecar/store/copy/sqlite.ts')
    return disposable(await openSource(url.path, Date.now()))
  }
  const { openSource } = await import('../sidecar/store/copy/postgres.ts')
  return disposable(await openSource(addressOf(url)))
}

async function targetAt(url: StoreUrl): Promise<Opened<Target>> {
  if (url.kind === 'sqlite') {
    const { openTarget } = await import('../sidecar/store/copy/sqlite.ts')
    return disposable(openTarget(url.path, Date.now()))
  }
  const { openTarget } = await import('../sidecar/store/copy/postgres.ts')
  return disposable(await openTarget(addressOf(url)))
}

async function urlOf(
  text: string,
  option: string,
  { passwordFile }: Options,
  env: Context['env'],
): Promise<StoreUrl> {
  if (/^sqlite:(?!:memory:$)./.test(text))
    return {
      kind: 'sqlite',
      path: path.resolve(text.slice('sqlite:'.length).replace(/^\/\//, '')),
      former: [],
    }
  if (!/^postgres(?:ql)?:\/\//.test(text) || !URL.canParse(text))
    throw new OperatorError(
      `store copy: ${option} names no store that can be copied`,
      2,
      `give ${option} sqlite:FILE, or ${option} postgres://USER@HOST/DATABASE`,
    )
  const faults: string[] = []
  const password = passwordFile === undefined ? null : await readPassword(passwordFile)
  const url = await databaseOf({ url: text, password, base: process.cwd(), env }, (fault) =>
    faults.push(fault),
  )
  const [fault] = faults
  if (fault !== undefined)
    throw new OperatorError(
      `store copy: ${option} ${fault}`,
      2,
      '"session-sidecar store copy --help" shows how it is used',
    )
  return url
}

/** Turns an error that interrupted the copy into cause and fix. A bug is returned unchanged. */
function interrupted(error: unknown): unknown {
  if (!(error instanceof StoreError) && !codeOf(error).startsWith('SQLITE_')) return error
  const cause = error instanceof StoreError ? (error.cause ?? error) : error
  return new OperatorError(
    `store: the copy was interrupted: ${messageOf(cause)}`,
    1,
    'remove the cause, and run the same command again: it continues',
  )
}

/** As in `store.password_file`. */
async function readPassword(file: string): Promise<string> {
  const text = await readSmallFile(file, 4096).catch((error: unknown) => {
    throw new OperatorError(`--password-file: ${messageOf(error)}`, 2)
  })
  const lines = text.split(/\r?\n/).map((line) => line.trim())
  const [password = '', ...rest] = lines.filter((line) => line !== '')
  if (password !== '' && rest.length === 0) return password
  throw new OperatorError(`--password-file: ${file} does not contain exactly one password`, 2)
}
