import { OperatorError } from '../std/errors.ts'
import { isObject, numberOf, type JsonObject } from '../std/json.ts'
import { encodeId } from '../std/path.ts'
import { adminClient, type AdminOptions } from './admin-client.ts'
import { watchDeadLetters } from './dead-letters.ts'
import { waitForDelivery } from './delivery.ts'
import type { Context } from './context.ts'
import { nextAttempt } from './next-attempt.ts'
import { field, printList } from './reply.ts'
import { count } from './text.ts'
import { jsonLine } from './terminal.ts'

interface DeliveriesOptions extends AdminOptions {
  status?: string
  handler?: string
  session?: string
  limit: number
  json?: boolean
}

interface RetryOptions extends AdminOptions {
  dead?: boolean
  handler?: string
  since?: string
  dryRun?: boolean
  wait?: boolean
  json?: boolean
}

export async function deliveries({ terminal, env }: Context, options: DeliveriesOptions): Promise<number> {
  const client = await adminClient(options, env)
  const query = { status: options.status, handler: options.handler, session_id: options.session }
  const rows = await client.list('/api/deliveries', query, options.limit)
  const next = options.json === true ? null : await nextAttempt(client, rows)
  const now = Date.now()
  printList(
    rows,
    [
      { title: 'ID', cell: (row) => field(row, 'id') },
      {
        title: 'STATUS',
        cell: (row) => field(row, 'status'),
        style: (row) => statusStyle(field(row, 'status')),
      },
      { title: 'TYPE', cell: (row) => field(row, 'type'), shrink: 12 },
      { title: 'SESSION', cell: (row) => field(row, 'session_id'), shrink: 8 },
      { title: 'HANDLER', cell: (row) => field(row, 'handler'), shrink: 8 },
      { title: 'TRIES', cell: (row) => String(attemptsOf(row).length), align: 'right' },
      { title: 'LAST ANSWER', cell: lastAnswer, shrink: 12 },
      { title: 'NEXT', cell: (row) => next?.(row, now) ?? '' },
    ],
    { json: options.json === true, none: 'no deliveries' },
    terminal,
  )
  return 0
}

export async function retry(
  { terminal, env }: Context,
  options: RetryOptions,
  args: string[],
): Promise<number> {
  const [id] = args
  if ((id === undefined) === (options.dead !== true)) {
    throw new OperatorError(
      'give either the id of a delivery or --dead',
      2,
      '"session-sidecar deliveries retry ID" for one, "session-sidecar deliveries retry --dead" for all dead ones',
    )
  }
  if (id !== undefined && (options.handler ?? options.since ?? options.dryRun) !== undefined) {
    throw new OperatorError('--handler, --since and --dry-run need --dead', 2)
  }
  const client = await adminClient(options, env)
  const json = options.json === true
  if (id !== undefined) {
    const answer = await client.post(`/api/deliveries/${encodeId(id)}/retry`)
    terminal.out(json ? jsonLine(answer) : `${id} will be sent again\n`)
    return options.wait === true ? await waitForDelivery(client, id, terminal, json) : 0
  }
  const waits = options.wait === true && options.dryRun !== true
  const deaths = waits
    ? await watchDeadLetters(client, { handler: options.handler, since: options.since })
    : null
  const answer = await client.post('/api/deliveries/retry', selection(options))
  const accepted = acceptedOf(answer)
  terminal.out(json ? jsonLine(answer) : retried(accepted, options.dryRun === true))
  return deaths === null ? 0 : await deaths.wait({ accepted, again: true, json }, terminal)
}

function selection(options: RetryOptions): JsonObject {
  return {
    status: 'dead',
    ...(options.handler === undefined ? {} : { handler: options.handler }),
    ...(options.since === undefined ? {} : { since: options.since }),
    ...(options.dryRun === true ? { dry_run: true } : {}),
  }
}

function retried(number: number, dryRun: boolean): string {
  const what = count(number, 'dead delivery', 'dead deliveries')
  return dryRun ? `${what} would be sent again\n` : `${what} will be sent again\n`
}

/** The number that the API accepted. */
export function acceptedOf(answer: JsonObject): number {
  return numberOf(answer['count']) ?? numberOf(answer['accepted']) ?? 0
}

function attemptsOf(row: JsonObject): JsonObject[] {
  return Array.isArray(row['attempts']) ? row['attempts'].filter(isObject) : []
}

function lastAnswer(row: JsonObject): string {
  const last = attemptsOf(row).at(-1)
  return last === undefined ? '' : field(last, 'error') || field(last, 'status')
}

function statusStyle(status: string): 'red' | 'yellow' | 'green' | null {
  if (status === 'dead') return 'red'
  return status === 'pending' ? 'yellow' : 'green'
}
