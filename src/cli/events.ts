import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, stringOf, type JsonObject } from '../std/json.ts'
import { adminClient, timeOf, UnreachableError, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { field, printList, titleOf } from './reply.ts'
import { renderTable, type Column } from './table.ts'
import { jsonLine } from './terminal.ts'
import { stamp } from './text.ts'

interface EventsOptions extends AdminOptions {
  follow?: boolean
  type?: string
  session?: string
  limit: number
  json?: boolean
}

/** Milliseconds between requests with --follow: prompt for a person, and cheap for the sidecar. */
const FOLLOW_INTERVAL = 500
/** Milliseconds between two tries while no sidecar answers, for example because it restarts. */
const RECONNECT_INTERVAL = 1000
/** Facts per request; the next request follows at once if there are more. */
const FOLLOW_PAGE = 100

/** `least`: the usual width, so that later rows line up with earlier ones. */
const columns: (Column<JsonObject> & { least: number })[] = [
  { title: 'TIME', cell: (row) => stamp(takenInAt(row)), least: 19 },
  {
    title: 'TYPE',
    cell: (row) => field(row, 'type'),
    style: (row) => styleOf(field(row, 'type')),
    least: 23,
  },
  {
    title: 'SESSION',
    cell: (row) => titleOf(dataOf(row)) || field(row, 'session_id'),
    least: 24,
    shrink: 12,
  },
  { title: 'CHANNEL', cell: firstChannel, least: 8 },
  { title: 'ID', cell: (row) => field(row, 'id'), least: 30, shrink: 10 },
]

export async function events(context: Context, options: EventsOptions): Promise<number> {
  const { terminal } = context
  const client = await adminClient(options, context.env)
  const filter = { type: options.type, session_id: options.session }
  const found = await client.list('/api/events', { ...filter, order: 'desc' }, options.limit)
  found.reverse()
  const follow = options.follow === true
  const shown = follow ? columns : columns.map((column) => ({ ...column, least: 0 }))
  const json = options.json === true
  if (follow && !json) terminal.out(renderTable(found, shown, terminal))
  else
    printList(
      found,
      shown,
      {
        json,
        none: options.session === undefined && options.type === undefined ? 'no facts yet' : 'no such facts',
      },
      terminal,
    )
  if (!follow) return 0

  let after = stringOf(found.at(-1)?.['id']) ?? undefined
  /** Prints the facts after the last one. @returns how many there were. */
  const printAdded = async (): Promise<number> => {
    // A rarely matching fact may be pruned before the next one matches. So continue after the
    // newest fact of any type.
    const [newest] = await client.list('/api/events', { order: 'desc' }, 1)
    const added = await client.list('/api/events', { ...filter, order: 'asc', after }, FOLLOW_PAGE)
    if (json) for (const row of added) terminal.out(jsonLine(row))
    else if (added.length > 0) terminal.out(renderTable(added, columns, terminal, false))
    after = stringOf((added.at(-1) ?? newest)?.['id']) ?? after
    return added.length
  }
  let connected = true
  for (;;) {
    try {
      const added = await printAdded()
      if (!connected) terminal.err(terminal.paintErr('dim', 'it answers again\n'))
      connected = true
      if (added < FOLLOW_PAGE) await sleep(FOLLOW_INTERVAL)
    } catch (error) {
      if (!(error instanceof UnreachableError)) throw error
      if (connected)
        terminal.err(`${terminal.paintErr('yellow', 'warning:')} ${error.reason}; trying again\n`)
      connected = false
      await sleep(RECONNECT_INTERVAL)
    }
  }
}

function dataOf(row: JsonObject): JsonObject {
  return isObject(row['data']) ? row['data'] : {}
}

function takenInAt(row: JsonObject): number | null {
  return timeOf(row['timestamp']) ?? timeOf(row['at'])
}

function firstChannel(row: JsonObject): string {
  const seen = isObject(row['seen']) ? row['seen'] : {}
  const times = Object.entries(seen).flatMap(([channel, at]) =>
    typeof at === 'number' ? [{ channel, at }] : [],
  )
  times.sort((a, b) => a.at - b.at)
  return times[0]?.channel ?? ''
}

export function styleOf(type: string): 'red' | 'yellow' | 'green' | null {
  if (type.endsWith('failed') || type.endsWith('not_delivered')) return 'red'
  if (type.startsWith('action.') || type === 'session.requires_action') return 'yellow'
  return type === 'turn.settled' || type === 'turn.completed' || type === 'call.answered' ? 'green' : null
}
