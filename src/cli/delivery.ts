import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, numberOf, type JsonObject } from '../std/json.ts'
import { encodeId } from '../std/path.ts'
import { adminClient, timeOf, type AdminClient, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { nextAttempt } from './next-attempt.ts'
import { field, quoted } from './reply.ts'
import { renderTable } from './table.ts'
import { jsonLine, visible, type Terminal } from './terminal.ts'
import { span, stamp } from './text.ts'

interface ShowOptions extends AdminOptions {
  json?: boolean
}

/** One delivery with its attempts, and the last failed response of the handler. */
export async function showDelivery(
  { terminal, env }: Context,
  options: ShowOptions,
  [id = '']: string[],
): Promise<number> {
  const client = await adminClient(options, env)
  const delivery = await client.get(`/api/deliveries/${encodeId(id)}`)
  if (options.json === true) terminal.out(jsonLine(delivery))
  else {
    const next = await nextAttempt(client, [delivery])
    terminal.out(render(delivery, next(delivery, Date.now()), terminal))
  }
  return 0
}

/** Milliseconds between requests. */
const INTERVAL = 250

/**
 * Waits until one delivery is delivered or dead, or its handler is paused.
 * @returns the exit code: 0 when it is delivered.
 */
export async function waitForDelivery(
  client: AdminClient,
  id: string,
  terminal: Terminal,
  json: boolean,
): Promise<number> {
  for (;;) {
    const delivery = await client.get(`/api/deliveries/${encodeId(id)}`)
    const status = field(delivery, 'status')
    const next = await nextAttempt(client, [delivery])
    const paused = next(delivery, Date.now()) === 'paused'
    if (status !== 'pending' || paused) {
      if (json) terminal.out(jsonLine(delivery))
      else terminal.out(`${id} is ${paused ? 'pending, and its handler is paused' : status}\n`)
      return status === 'delivered' ? 0 : 1
    }
    await sleep(INTERVAL)
  }
}

function render(delivery: JsonObject, next: string, terminal: Terminal): string {
  const { paint } = terminal
  const attempts = Array.isArray(delivery['attempts']) ? delivery['attempts'].filter(isObject) : []
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
    row('next', next),
    attempts.length === 0 ? '\nnot tried yet\n' : `\n${table}`,
    answer === '' ? '' : `\nThe last failed response of the handler:\n${answer}`,
  ].join('')
}
