import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { request } from 'undici'
import { onTestFinished } from 'vitest'

export type Fields = Record<string, unknown>

/** A request on its way to the emulator; a deviation may change it. */
export interface Asked {
  method: string
  path: string
  query: URLSearchParams
  headers: Record<string, string>
  /** JSON of the body, undefined when there is none. */
  body: unknown
}

/** An answer on its way back. `body` is JSON or text; it goes out as it is left. */
export interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: unknown
}

/** One behaviour that differs from the emulator's. */
export interface Change {
  ask?(asked: Asked): void
  answer?(asked: Asked, answer: Answer): void
  /** Each block of an event stream, without the blank line; null drops it. */
  frame?(block: string): string | null
}

export interface Proxy {
  baseUrl: string
  /** Every request that came and the status that went. */
  seen: { method: string; path: string; status: number }[]
}

/** Stands in front of a service and changes what `change` says. Ends with the test. */
export async function proxyOf(target: string, change: Change): Promise<Proxy> {
  const seen: Proxy['seen'] = []
  const server = createServer((incoming, outgoing) => {
    pass(target, change, incoming, outgoing, seen).catch(() => outgoing.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen }
}

async function pass(
  target: string,
  change: Change,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  seen: Proxy['seen'],
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const url = new URL(incoming.url ?? '/', target)
  const text = Buffer.concat(chunks).toString('utf8')
  const { host: _host, connection: _connection, 'content-length': _length, ...headers } = incoming.headers
  const asked: Asked = {
    method: incoming.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    headers: headers as Record<string, string>,
    body: parse(text),
  }
  change.ask?.(asked)
  const search = asked.query.toString()
  const leaving = new AbortController()
  outgoing.once('close', () => leaving.abort())
  const response = await request(`${target}${asked.path}${search === '' ? '' : `?${search}`}`, {
    method: asked.method as 'GET',
    headers: asked.headers,
    signal: leaving.signal,
    ...(asked.body === undefined
      ? {}
      : { body: typeof asked.body === 'string' ? asked.body : JSON.stringify(asked.body) }),
  })
  const stream = String(response.headers['content-type']).startsWith('text/event-stream')
  const {
    'content-length': _size,
    'transfer-encoding': _coding,
    connection: _kept,
    ...kept
  } = response.headers
  const answer: Answer = {
    status: response.statusCode,
    headers: kept,
    body: stream ? '' : parse(await response.body.text()),
  }
  change.answer?.(asked, answer)
  seen.push({ method: asked.method, path: asked.path, status: answer.status })
  outgoing.writeHead(answer.status, { ...answer.headers, date: new Date().toUTCString() })
  if (!stream) {
    const { body } = answer
    outgoing.end(body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body))
    return
  }
  outgoing.flushHeaders()
  let rest = ''
  for await (const chunk of response.body) {
    const blocks = (rest + String(chunk)).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const left = change.frame === undefined ? block : change.frame(block)
      if (left !== null) outgoing.write(`${left}\n\n`)
    }
  }
  outgoing.end()
}

function parse(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

/** A body that is an object, for changing; an unused one when it is none. */
export function fields(body: unknown): Fields {
  return typeof body === 'object' && body !== null ? (body as Fields) : {}
}
