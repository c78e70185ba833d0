import { encodeId } from '../std/path.ts'
import { adminClient, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { jsonLine } from './terminal.ts'

interface HandlersOptions extends AdminOptions {
  json?: boolean
}

export function pause(context: Context, options: HandlersOptions, args: string[]): Promise<number> {
  return change('pause', context, options, args)
}

export function resume(context: Context, options: HandlersOptions, args: string[]): Promise<number> {
  return change('resume', context, options, args)
}

const DONE = { pause: 'is paused; its backlog is kept', resume: 'is resumed' } as const

async function change(
  action: keyof typeof DONE,
  { terminal, env }: Context,
  options: HandlersOptions,
  [name = '']: string[],
): Promise<number> {
  const client = await adminClient(options, env)
  const answer = await client.post(`/api/handlers/${encodeId(name)}/${action}`)
  terminal.out(options.json === true ? jsonLine(answer) : `${name} ${DONE[action]}\n`)
  return 0
}
