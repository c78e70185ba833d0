import { isObject } from '../std/json.ts'
import { idsOf } from './catalogue.ts'
import { milliseconds, string, textAt, written } from './kind.ts'
import type { Places } from './places.ts'
import { codeOf, type Reply } from './reply.ts'
import type { Verdicts } from './verdict.ts'

/** The rules that every single answer must follow. */
export const WATCHED = idsOf(
  'GEN-07 GEN-11 GEN-20 ERR-01..03 ERR-17 ERR-20 ERR-22 ERR-28 ERR-31 ERR-34 ERR-36 ERR-38 ERR-45 ERR-48 AUT-26 LIM-39 LIM-40 SES-22',
)

const STATUSES: Readonly<Record<string, readonly [string, (status: number) => boolean]>> = {
  invalid_request: ['ERR-03', (status) => status === 400],
  permission_denied: ['ERR-17', (status) => status === 403],
  not_found: ['ERR-20', (status) => status === 404],
  conflict: ['ERR-22', (status) => status === 409],
  project_limit_exceeded: ['ERR-28', (status) => status === 429],
  rate_limit_exceeded: ['ERR-31', (status) => status === 429],
  directory_unavailable: ['ERR-36', (status) => status === 503],
  internal_error: ['ERR-45', (status) => status >= 500],
}

const BINARY = /\/(archive|content|events|openapi\.json)$/
const TITLE = 'every answer'

/** Checks one answer, whichever check it belongs to. */
export function watch(reply: Reply, verdicts: Verdicts, token: string, places: Places | null): void {
  const judge = (id: string, expected: string, holds: boolean, seen: string): void => {
    if (holds) verdicts.hold(id, TITLE)
    else verdicts.differ(id, TITLE, expected, seen, reply)
  }
  const cors = Object.keys(reply.headers).filter((name) => name.startsWith('access-control-'))
  judge('GEN-11', 'no CORS header', cors.length === 0, cors.join(', '))
  judge('SES-22', 'no secret of a token in an answer', !reply.text.includes(token), 'the token itself')
  const { pathname } = new URL(reply.sent.url)
  if (reply.text !== '' && (reply.status >= 400 || !BINARY.test(pathname))) {
    const type = reply.headers['content-type'] ?? 'no content type'
    judge(
      'GEN-07',
      'JSON',
      /\bjson\b/.test(type) && reply.json !== undefined,
      `${type}: ${reply.text.slice(0, 80)}`,
    )
  }
  if (reply.status >= 400) refusal(reply, judge)
  else times(reply, judge)
  if (reply.status === 401) {
    const header = reply.headers['www-authenticate'] ?? 'absent'
    judge(
      'AUT-26',
      'www-authenticate: Bearer realm=service',
      /^Bearer realm="?service"?$/i.test(header),
      header,
    )
  }
  if (!reply.sent.authenticated || pathname.endsWith('/openapi.json') || reply.status === 401) return
  if (places?.budget == null || (reply.status === 404 && codeOf(reply) === '')) return
  const { left, bucket } = places.budget
  judge(
    'LIM-39',
    `a header ${left}`,
    /^\d+$/.test(reply.headers[left] ?? ''),
    reply.headers[left] ?? 'absent',
  )
  judge(
    'LIM-40',
    `a header ${bucket}`,
    (reply.headers[bucket] ?? '') !== '',
    reply.headers[bucket] ?? 'absent',
  )
}

type Judge = (id: string, expected: string, holds: boolean, seen: string) => void

function refusal(reply: Reply, judge: Judge): void {
  const error = isObject(reply.json) && isObject(reply.json['error']) ? reply.json['error'] : {}
  const strings = ['code', 'message', 'request_id'].every((key) => string.fits(error[key]))
  judge('ERR-01', '{error: {code, message, request_id}}, all strings', strings, reply.text)
  judge('ERR-02', 'a request_id', textAt(error, 'request_id') !== '', reply.text)
  if (reply.status === 400) {
    const clean = isObject(reply.json) && !('data' in reply.json) && !('data' in error)
    judge('ERR-48', 'no data in a 400', clean, reply.text)
  }
  const code = codeOf(reply)
  const known = Object.hasOwn(STATUSES, code) ? STATUSES[code] : undefined
  if (known !== undefined)
    judge(known[0], `the status of ${code}`, known[1](reply.status), String(reply.status))
  const wait = reply.headers['retry-after']
  if (code === 'rate_limit_exceeded')
    judge('ERR-34', 'Retry-After in seconds', /^\d+$/.test(wait ?? ''), wait ?? 'absent')
  if (code === 'directory_unavailable') judge('ERR-38', 'Retry-After', wait !== undefined, 'absent')
}

/** Maximum values checked in one answer. */
const VALUES_MAX = 5000

function times(reply: Reply, judge: Judge): void {
  const waiting: unknown[] = [reply.json]
  if (new URL(reply.sent.url).pathname.endsWith('/openapi.json')) return
  for (let looked = 0; waiting.length > 0 && looked < VALUES_MAX; looked++) {
    const value = waiting.pop()
    if (Array.isArray(value)) waiting.push(...(value as unknown[]))
    if (!isObject(value)) continue
    for (const [key, inner] of Object.entries(value)) {
      // The client or the agent wrote these parts, so they may have any shape.
      if (['metadata', 'arguments', 'parameters', 'detail', 'args'].includes(key)) continue
      if (!/^(created|updated|started|completed|expires|captured)_at$/.test(key)) waiting.push(inner)
      else if (inner !== null)
        judge('GEN-20', `${key} in milliseconds`, milliseconds.fits(inner), written(inner))
    }
  }
}
