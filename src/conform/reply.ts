import { textAt } from './kind.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'

/** A sent request. */
export interface Sent {
  readonly method: Method
  readonly url: string
  /** Without the token. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
  /** False: it had no token, or an invalid one. */
  readonly authenticated: boolean
}

/** An answer, with its request. */
export interface Reply {
  readonly sent: Sent
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The body as JSON; undefined when it is not JSON. */
  readonly json: unknown
}

export function codeOf(reply: Reply): string {
  return textAt(reply.json, 'error.code')
}

export function messageOf(reply: Reply): string {
  return textAt(reply.json, 'error.message')
}

/** The service's id of a request, for a report to its operators. */
export function requestId(reply: Reply): string | null {
  return textAt(reply.json, 'error.request_id') || (reply.headers['x-request-id'] ?? null)
}

/** The most characters of a body in the printed command, so that a person can paste it. */
const LONGEST_BODY = 2000

/** The request as a shell command; the token is the variable `$TOKEN`. */
export function asCurl({ method, url, headers, body, authenticated }: Sent): string {
  const parts = ['curl', '-i', ...(method === 'GET' ? [] : ['-X', method]), quote(url)]
  if (authenticated) parts.push('-H', '"authorization: Bearer $TOKEN"')
  for (const [name, value] of Object.entries(headers)) parts.push('-H', quote(`${name}: ${value}`))
  if (body !== null) {
    const short = body.length <= LONGEST_BODY
    parts.push('-d', short ? quote(body) : `@body.json # ${body.length} characters`)
  }
  return parts.join(' ')
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** A short description of an answer. */
export function describeReply(reply: Reply): string {
  const code = codeOf(reply)
  return code === ''
    ? `${reply.status} ${cutTo(reply.text, 160)}`.trim()
    : `${reply.status} ${code}: ${messageOf(reply)}`
}

export function cutTo(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`
}
