import { adminClient, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { field, printList } from './reply.ts'

interface ToolsOptions extends AdminOptions {
  json?: boolean
}

/** Tools are few: one list holds them all. */
const ALL = 1000

/** With `--json` the lines are the entries of the `tools` array to declare on a session. */
export async function tools({ terminal, env }: Context, options: ToolsOptions): Promise<number> {
  const client = await adminClient(options, env)
  printList(
    await client.list('/api/tools', {}, ALL),
    [
      { title: 'TOOL', cell: (row) => field(row, 'name') },
      { title: 'DESCRIPTION', cell: (row) => field(row, 'description'), shrink: 20 },
      { title: 'PARAMETERS', cell: (row) => field(row, 'parameters'), shrink: 12 },
    ],
    { json: options.json === true, none: 'no tools' },
    terminal,
  )
  return 0
}
