import { request as send, type IncomingMessage, type ServerResponse } from 'node:http'
import { listen, type Listening } from './listen.ts'

export interface Passed {
  method: string
  path: string
  /** Steady milliseconds. */
  at: number
  status: number | null
  headers: IncomingMessage['headers']
  /** What was sent with it, as far as it came. */
  body: string
  /** Of the answer, and when it began; null: none came. */
  reply: IncomingMessage['headers'] | null
  answeredAt: number | null
  /** When the answer was sent in full, or the connection closed; null while it goes on. */
  endedAt: number | null
}

/** `reset` cuts the connection; undefined lets the request through. */
type Said = { status: number; headers?: Record<string, string>; body?: string } | 'reset' | undefined

/** A proxy before the service that counts what passes, and can close the way. */
export class Gateway implements AsyncDisposable {
  readonly passed: Passed[] = []
  /** Answers in the service's stead; undefined lets the request through, a promise of it later. */
  intercept: (request: IncomingMessage) => Said | Promise<Said> = () => undefined
  readonly url: string
  readonly #listening: Listening

  private constructor(listening: Listening) {
    this.#listening = listening
    this.url = listening.url
  }

  static async start(target: string, port = 0): Promise<Gateway> {
    let gateway: Gateway | undefined
    const listening = await listen((request, response) => void gateway?.pass(target, request, response), port)
    gateway = new Gateway(listening)
    return gateway
  }

  async pass(target: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const entry: Passed = {
      method: request.method ?? '',
      path: request.url ?? '',
      at: performance.now(),
      status: null,
      headers: request.headers,
      body: '',
      reply: null,
      answeredAt: null,
      endedAt: null,
    }
    response.on('close', () => (entry.endedAt = performance.now()))
    this.passed.push(entry)
    const said = await this.intercept(request)
    if (said === 'reset') return void request.socket.resetAndDestroy()
    if (said !== undefined) {
      entry.status = said.status
      request.resume()
      return void response.writeHead(said.status, said.headers).end(said.body)
    }
    const upstream = send(target + (request.url ?? ''), {
      method: request.method,
      headers: { ...request.headers, host: new URL(target).host },
      agent: false,
    })
    upstream.on('response', (reply) => {
      entry.status = reply.statusCode ?? null
      entry.reply = reply.headers
      entry.answeredAt = performance.now()
      response.writeHead(reply.statusCode ?? 502, reply.headers)
      response.flushHeaders()
      reply.pipe(response)
      reply.on('error', () => response.destroy())
      reply.on('close', () => {
        if (!reply.complete) response.destroy()
      })
    })
    upstream.on('error', () => response.destroy())
    response.on('close', () => upstream.destroy())
    request.on('data', (bytes: Buffer) => (entry.body += bytes.toString()))
    request.pipe(upstream)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listening[Symbol.asyncDispose]()
  }
}
