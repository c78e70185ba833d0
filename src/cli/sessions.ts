import { adminClient, timeOf, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { field, printList } from './reply.ts'
import { relative } from './text.ts'

interface SessionsOptions extends AdminOptions {
  status?: string
  limit: number
  json?: boolean
}

export async function sessions({ terminal, env }: Context, options: SessionsOptions): Promise<number> {
  const client = await adminClient(options, env)
  const rows = await client.list('/api/sessions', { status: options.status }, options.limit)
  const now = Date.now()
  printList(
    rows,
    [
      { title: 'ID', cell: (row) => field(row, 'id'), shrink: 13 },
      {
        title: 'STATUS',
        cell: (row) => field(row, 'status'),
        style: (row) => statusStyle(field(row, 'status')),
      },
      { title: 'TITLE', cell: (row) => field(row, 'title'), shrink: 16 },
      {
        title: 'ACTIONS',
        cell: (row) => (Array.isArray(row['required_actions']) ? String(row['required_actions'].length) : ''),
        align: 'right',
      },
      { title: 'UPDATED', cell: (row) => relative(timeOf(row['updated_at']), now) },
    ],
    { json: options.json === true, none: 'no sessions' },
    terminal,
  )
  return 0
}

function statusStyle(status: string): 'red' | 'yellow' | 'cyan' | null {
  if (status === 'failed') return 'red'
  if (status === 'requires_action') return 'yellow'
  return status === 'working' ? 'cyan' : null
}
