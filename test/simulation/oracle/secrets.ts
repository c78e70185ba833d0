import type { HttpRequest, HttpStreamRequest } from '../../../src/std/ports.ts'
import { textOf } from '../request.ts'
import type { Simulation } from '../simulation.ts'
import type { Fault } from '../../checker/history.ts'

/** Errors of tools and handlers: only their own log may contain them. */
export const THROWN = 'hush: thrown by a function'
/** What a tool over HTTP answers besides a result. */
export const TOOL_ERROR = 'secret of the tool'
export const TOKEN = 'svc_pat_'
export const WEBHOOK_SECRET = 'secret_of_the_subscription_'
export const HANDLER_KEY = Buffer.from('the key of a handler, for signing').toString('base64')

/** Whatever is read by people or other programs has none of these in it. */
const SECRETS: readonly string[] = [THROWN, TOOL_ERROR, TOKEN, WEBHOOK_SECRET, HANDLER_KEY]

/** Columns that a console, the admin API or a callback shows. */
const SHOWN: readonly (readonly [table: string, column: string])[] = [
  ['facts', 'body'],
  ['deliveries', 'log'],
  ['calls', 'error'],
  ['calls', 'result_text'],
  ['calls', 'outcome'],
  ['handlers', 'pause_reason'],
  ['sessions', 'raw'],
  ['turns', 'raw'],
  ['actions', 'raw'],
  ['quarantine', 'reason'],
]

/** @returns the first secret in `text`. */
export function secretIn(text: string): string | undefined {
  return SECRETS.find((secret) => text.includes(secret))
}

/** I13: what leaves the sidecar. Only the service sees the token, and only in its header. */
export function leakOf(request: HttpRequest | HttpStreamRequest, toService: boolean): string | undefined {
  const { url, headers } = request
  const shown = Object.entries(headers).filter(([name]) => !(toService && name === 'authorization'))
  return secretIn(`${url}\n${shown.join('\n')}`) ?? secretIn(textOf(request))
}

/** I13: what is kept for showing. */
export function secretFaults({ db }: Simulation): Fault | null {
  for (const [table, column] of SHOWN) {
    const text = db
      .prepare<[], string | null>(`SELECT group_concat(${column}, char(10)) FROM ${table}`)
      .pluck()
      .get()
    const secret = secretIn(text ?? '')
    if (secret !== undefined) return { invariant: 'I13', message: `${table}.${column} has "${secret}" in it` }
  }
  return null
}
