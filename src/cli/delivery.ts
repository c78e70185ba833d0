import { isObject, numberOf, type JsonObject } from '../core/json.ts'
import { encodeId } from '../service/path.ts'
import { adminClient, timeOf, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { field, quoted } from './reply.ts'
import { renderTable } from './table.ts'
import { jsonLine, visible, type Terminal } from './terminal.ts'
import { relative, span, stamp } from './text.ts'

interface ShowOptions extends AdminOptions {
  json?: boolean
}

/** One delivery with its attempts, and what the handler last answered when it did not take the fact. */
export async function showDelivery(
  { terminal, env }: Context,
  options: ShowOptions,
  [id = '']: string[],
): Promise<number> {
  const client = await adminClient(options, env)
  const delivery = await client.get(`/api/deliveries/${encodeId(id)}`)
  terminal.out(options.json === true ? jsonLine(delivery) : render(delivery, Date.now(), terminal))
  return 0
}

function render(delivery: JsonObject, now: number, terminal: Terminal): string {
  const { paint } = terminal
  const attempts = Array.isArray(delivery['attempts']) ? delivery['attempts'].filter(isObject) : []
  const nextAt = timeOf(delivery['next_at'])
  const row = (name: string, text: string): string =>
    text === '' ? '' : `${paint('bold', name.padEnd(8))}  ${visible(text)}\n`
  const table = renderTable(
    attempts,
    [
      { title: 'ATTEMPT', cell: (one) => stamp(timeOf(one['at'])) },
      { title: 'STATUS', cell: (one) => field(one, 'status'), align: 'right' },
      { title: 'TOOK', cell: (one) => span(numberOf(one['ms']) ?? 0), align: 'right' },
      { title: 'ERROR', cell: (one) => field(one, 'error'), shrink: 12 },
    ],
    terminal,
  )
  const answer = quoted(field(delivery, 'last_answer'), terminal)
  return [
    row('delivery', field(delivery, 'id')),
    row('fact', `${field(delivery, 'type')} ${field(delivery, 'fact_id')}`),
    row('session', field(delivery, 'session_id')),
    row('handler', field(delivery, 'handler')),
    row('status', field(delivery, 'status')),
    row('next', relative(nextAt, now)),
    attempts.length === 0 ? '\nnot tried yet\n' : `\n${table}`,
    answer === '' ? '' : `\nWhat the handler last answered when it did not take it:\n${answer}`,
  ].join('')
}
