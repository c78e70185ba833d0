import { encodeId } from '../client/discovery/path.ts'
import { adminClient, timeOf, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { field, printList } from './reply.ts'
import { relative } from './text.ts'
import { jsonLine } from './terminal.ts'

interface HandlersOptions extends AdminOptions {
  json?: boolean
}

/** Handlers are few: one list holds them all. */
const ALL = 1000

export async function handlers({ terminal, env }: Context, options: HandlersOptions): Promise<number> {
  const client = await adminClient(options, env)
  const now = Date.now()
  printList(
    await client.list('/api/handlers', {}, ALL),
    [
      { title: 'HANDLER', cell: (row) => field(row, 'name') },
      {
        title: 'STATE',
        cell: (row) => field(row, 'state'),
        style: (row) => (field(row, 'state') === 'up' ? 'green' : 'yellow'),
      },
      { title: 'PENDING', cell: (row) => field(row, 'pending'), align: 'right' },
      { title: 'DEAD', cell: (row) => field(row, 'dead'), align: 'right' },
      { title: 'OLDEST', cell: (row) => relative(timeOf(row['oldest_pending_at']), now) },
      { title: 'SINCE', cell: (row) => relative(timeOf(row['since']), now) },
      { title: 'LAST ERROR', cell: (row) => field(row, 'last_error'), shrink: 12 },
    ],
    { json: options.json === true, none: 'no handlers' },
    terminal,
  )
  return 0
}

export function pause(context: Context, options: HandlersOptions, args: string[]): Promise<number> {
  return change('pause', 'is paused; its backlog is kept', context, options, args)
}

export function resume(context: Context, options: HandlersOptions, args: string[]): Promise<number> {
  return change('resume', 'is resumed', context, options, args)
}

async function change(
  action: 'pause' | 'resume',
  said: string,
  { terminal, env }: Context,
  options: HandlersOptions,
  [name = '']: string[],
): Promise<number> {
  const client = await adminClient(options, env)
  const answer = await client.post(`/api/handlers/${encodeId(name)}/${action}`)
  terminal.out(options.json === true ? jsonLine(answer) : `${name} ${said}\n`)
  return 0
}
