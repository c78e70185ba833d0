import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, stringOf, type JsonObject } from '../core/json.ts'
import { adminClient, timeOf, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { field, printList, titleOf } from './reply.ts'
import type { Column } from './table.ts'
import { jsonLine, pad, visible } from './terminal.ts'
import { stamp } from './text.ts'

interface EventsOptions extends AdminOptions {
  follow?: boolean
  type?: string
  session?: string
  limit: number
  json?: boolean
}

/** Milliseconds between looks while following: prompt for a person, nothing for the sidecar. */
const FOLLOW_INTERVAL = 500
/** Facts taken at a look; more come with the next one, at once. */
const FOLLOW_PAGE = 100

const columns: Column<JsonObject>[] = [
  { title: 'TIME', cell: (row) => stamp(takenInAt(row)) },
  { title: 'TYPE', cell: (row) => field(row, 'type'), style: (row) => styleOf(field(row, 'type')) },
  { title: 'SESSION', cell: (row) => titleOf(dataOf(row)) || field(row, 'session_id'), shrink: 12 },
  { title: 'FIRST BY', cell: firstChannel },
  { title: 'ID', cell: (row) => field(row, 'id'), shrink: 10 },
]

export async function events(context: Context, options: EventsOptions): Promise<number> {
  const { terminal } = context
  const client = await adminClient(options, context.env)
  const filter = { type: options.type, session_id: options.session }
  const found = await client.list('/api/events', { ...filter, order: 'desc' }, options.limit)
  found.reverse()
  printList(found, columns, { json: options.json === true, none: 'no facts yet' }, terminal)
  if (options.follow !== true) return 0

  let after = stringOf(found.at(-1)?.['id']) ?? undefined
  for (;;) {
    // What is shown seldom may be removed before the next of its kind comes: the newest of all is there for long.
    const [newest] = await client.list('/api/events', { order: 'desc' }, 1)
    const news = await client.list('/api/events', { ...filter, order: 'asc', after }, FOLLOW_PAGE)
    for (const row of news) {
      terminal.out(options.json === true ? jsonLine(row) : `${followed(row, context)}\n`)
    }
    after = stringOf((news.at(-1) ?? newest)?.['id']) ?? after
    if (news.length < FOLLOW_PAGE) await sleep(FOLLOW_INTERVAL)
  }
}

/** A fact on a line of its own: the widths of a table are not known beforehand. */
function followed(row: JsonObject, { terminal }: Context): string {
  const type = field(row, 'type')
  const style = styleOf(type)
  const shown = pad(visible(type), 24)
  const session = visible(titleOf(dataOf(row)) || field(row, 'session_id'))
  return [
    terminal.paint('dim', stamp(takenInAt(row))),
    style === null ? shown : terminal.paint(style, shown),
    pad(session, 36),
    terminal.paint('dim', firstChannel(row)),
  ].join('  ')
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
