import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { listen } from '../listen.ts'

/** A request as it came. */
export interface Asked {
  method: string
  path: string
  query: Record<string, string>
  headers: Record<string, string>
  body: string
  /** Of all sockets that the server has accepted, from 1. */
  socket: number
}

export interface Said {
  status?: number
  headers?: Record<string, string>
  /** Anything but a string is sent as JSON. */
  body?: unknown
}

/** An answer, or the response itself for whatever misbehaves. */
export type Answerer = (asked: Asked, response: ServerResponse) => Said | null | Promise<Said | null>

export interface TestServer extends AsyncDisposable {
  url: string
  asked: Asked[]
  /** Sockets that are open now. */
  open(): number
  accepted(): number
  /** From now on. */
  answer: Answerer
}

/** A real HTTP server on a port of its own with given answers that records its requests. */
export async function startServer(answer: Answerer): Promise<TestServer> {
  const asked: Asked[] = []
  const sockets = new Map<Socket, number>()
  let accepted = 0
  const listening = await listen((request, response) => void serve(request, response))
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const one = await read(request, sockets.get(request.socket) ?? 0)
    asked.push(one)
    const said = await test.answer(one, response)
    if (said === null) return
    const text = typeof said.body === 'string' ? said.body : JSON.stringify(said.body ?? {})
    response.writeHead(said.status ?? 200, { 'content-type': 'application/json', ...said.headers })
    response.end(text)
  }
  listening.server.on('connection', (socket) => {
    sockets.set(socket, ++accepted)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
  })
  const test: TestServer = {
    url: listening.url,
    asked,
    answer,
    open: () => sockets.size,
    accepted: () => accepted,
    [Symbol.asyncDispose]: () => listening[Symbol.asyncDispose](),
  }
  return test
}

async function read(request: IncomingMessage, socket: number): Promise<Asked> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const url = new URL(request.url ?? '/', 'http://test')
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.headers)) headers[name] = String(value)
  return {
    method: request.method ?? '',
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers,
    body: Buffer.concat(chunks).toString(),
    socket,
  }
}

/** Resolves once `condition` holds. */
export async function until(condition: () => boolean, within = 5000): Promise<void> {
  const deadline = performance.now() + within
  while (!condition()) {
    if (performance.now() > deadline) throw new Error('the condition never held')
    await new Promise((resolve) => setImmediate(resolve))
  }
}
