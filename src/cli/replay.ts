import { adminClient, type AdminOptions } from './admin-client.ts'
import { watchDeadLetters } from './dead-letters.ts'
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
  const deaths = options.wait === true ? await watchDeadLetters(client, { handler: options.handler }) : null
  const answer = await client.post('/api/replay', { handler: options.handler, from: options.from })
  const json = options.json === true
  const accepted = acceptedOf(answer)
  terminal.out(json ? jsonLine(answer) : `${options.handler} gets ${count(accepted, 'fact')} again\n`)
  return deaths === null ? 0 : await deaths.wait({ accepted, again: false, json }, terminal)
}
