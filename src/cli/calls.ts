import { adminClient, timeOf, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { field, printList } from './reply.ts'
import { relative } from './text.ts'

interface CallsOptions extends AdminOptions {
  state?: string
  session?: string
  limit: number
  json?: boolean
}

export async function calls({ terminal, env }: Context, options: CallsOptions): Promise<number> {
  const client = await adminClient(options, env)
  const query = { state: options.state, session_id: options.session }
  const rows = await client.list('/api/calls', query, options.limit)
  const now = Date.now()
  printList(
    rows,
    [
      { title: 'CALL', cell: (row) => field(row, 'call_id'), shrink: 12 },
      { title: 'TOOL', cell: (row) => field(row, 'name'), shrink: 12 },
      { title: 'STATE', cell: (row) => field(row, 'state'), style: (row) => stateStyle(field(row, 'state')) },
      { title: 'OUTCOME', cell: (row) => field(row, 'outcome'), shrink: 8 },
      { title: 'RUNS', cell: (row) => field(row, 'attempts'), align: 'right' },
      { title: 'RECEIVED', cell: (row) => relative(timeOf(row['received_at']), now) },
      { title: 'SESSION', cell: (row) => field(row, 'session_id'), shrink: 8 },
      { title: 'ERROR', cell: (row) => field(row, 'error'), shrink: 8 },
    ],
    { json: options.json === true, none: 'no calls' },
    terminal,
  )
  return 0
}

function stateStyle(state: string): 'red' | 'yellow' | 'green' | null {
  if (state === 'failed' || state === 'not_delivered') return 'red'
  return state === 'answered' ? 'green' : 'yellow'
}
