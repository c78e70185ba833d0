import { adminClient, type AdminOptions } from './admin-client.ts'
import { waitForBacklog } from './backlog.ts'
import type { Context } from './context.ts'
import { acceptedOf } from './deliveries.ts'
import { count } from './text.ts'
import { jsonLine } from './terminal.ts'

interface ReplayOptions extends AdminOptions {
  handler: string
  from: string
  wait?: boolean
  json?: boolean
}

export async function replay({ terminal, env }: Context, options: ReplayOptions): Promise<number> {
  const client = await adminClient(options, env)
  const answer = await client.post('/api/replay', { handler: options.handler, from: options.from })
  terminal.out(
    options.json === true
      ? jsonLine(answer)
      : `${options.handler} gets ${count(acceptedOf(answer), 'fact')} again\n`,
  )
  return options.wait === true ? await waitForBacklog(client, options.handler, terminal) : 0
}
