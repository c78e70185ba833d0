import type { JsonObject } from '../std/json.ts'
import { adminClient, timeOf, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { field, printList } from './reply.ts'
import type { Column } from './table.ts'
import type { Style } from './terminal.ts'
import { relative } from './text.ts'

interface ListOptions extends AdminOptions {
  limit?: number
  json?: boolean
  session?: string
  state?: string
  status?: string
}

/** The limit of the list: handlers and tools are few, so one page holds them all. */
const ALL = 1000

/** A command that prints a list of the admin API as a table. */
interface List {
  path: string
  query?: (options: ListOptions) => Record<string, string | undefined>
  /** `now`: milliseconds. */
  columns: (now: number) => Column<JsonObject>[]
  none: string
}

function listing({ path, query, columns, none }: List) {
  return async ({ terminal, env }: Context, options: ListOptions): Promise<number> => {
    const client = await adminClient(options, env)
    const rows = await client.list(path, query?.(options) ?? {}, options.limit ?? ALL)
    printList(rows, columns(Date.now()), { json: options.json === true, none }, terminal)
    return 0
  }
}

export const sessions = listing({
  path: '/api/sessions',
  query: ({ status }) => ({ status }),
  columns: (now) => [
    shown('ID', 'id', { shrink: 13 }),
    {
      title: 'STATUS',
      cell: statusOf,
      style: (row) => STATUS_STYLES[statusOf(row)] ?? null,
    },
    shown('TITLE', 'title', { shrink: 16 }),
    {
      title: 'ACTIONS',
      cell: (row) =>
        Array.isArray(row['required_actions']) && statusOf(row) !== 'deleted'
          ? String(row['required_actions'].length)
          : '',
      align: 'right',
    },
    timed('UPDATED', 'updated_at', now),
  ],
  none: 'no sessions',
})

const STATUS_STYLES: Readonly<Record<string, Style>> = {
  failed: 'red',
  requires_action: 'yellow',
  working: 'cyan',
}

/** A deleted session keeps the status that was read last. */
function statusOf(row: JsonObject): string {
  return timeOf(row['deleted_at']) === null ? field(row, 'status') : 'deleted'
}

export const calls = listing({
  path: '/api/calls',
  query: ({ state, session }) => ({ state, session_id: session }),
  columns: (now) => [
    shown('CALL', 'call_id', { shrink: 12 }),
    shown('TOOL', 'name', { shrink: 12 }),
    styled('STATE', 'state', { failed: 'red', not_delivered: 'red', answered: 'green' }, 'yellow'),
    shown('OUTCOME', 'outcome', { shrink: 8 }),
    shown('RUNS', 'attempts', { align: 'right' }),
    timed('RECEIVED', 'received_at', now),
    shown('SESSION', 'session_id', { shrink: 8 }),
    shown('ERROR', 'error', { shrink: 8 }),
  ],
  none: 'no calls',
})

/** With `--json` the lines are the entries of the `tools` array to declare on a session. */
export const tools = listing({
  path: '/api/tools',
  columns: () => [
    shown('TOOL', 'name'),
    shown('DESCRIPTION', 'description', { shrink: 20 }),
    shown('PARAMETERS', 'parameters', { shrink: 12 }),
  ],
  none: 'no tools',
})

export const handlers = listing({
  path: '/api/handlers',
  columns: (now) => [
    shown('HANDLER', 'name'),
    styled('STATE', 'state', { up: 'green' }, 'yellow'),
    shown('PENDING', 'pending', { align: 'right' }),
    shown('DEAD', 'dead', { align: 'right' }),
    timed('OLDEST PENDING', 'oldest_pending_at', now),
    timed('STATE SINCE', 'since', now),
    shown('LAST ERROR', 'last_error', { shrink: 12 }),
  ],
  none: 'no handlers',
})

function shown(
  title: string,
  name: string,
  more: Pick<Column<JsonObject>, 'align' | 'shrink'> = {},
): Column<JsonObject> {
  return { title, cell: (row) => field(row, name), ...more }
}

function timed(title: string, name: string, now: number): Column<JsonObject> {
  return { title, cell: (row) => relative(timeOf(row[name]), now) }
}

function styled(
  title: string,
  name: string,
  styles: Readonly<Record<string, Style>>,
  other: Style | null = null,
): Column<JsonObject> {
  return { ...shown(title, name), style: (row) => styles[field(row, name)] ?? other }
}
