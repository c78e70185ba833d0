import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { freePort, listen, type Listening } from './listen.ts'

/** One secret for all, and what follows it in a rotation. */
export const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
export const NEXT_SECRET = 'whsec_c2VjcmV0LWFmdGVyLXRoZS1yb3RhdGlvbi0zMmI='

export interface Event {
  id: string
  type: string
  timestamp: string
  session_id: string | null
  data: EventData
  delivery: { attempt: number; handler: string }
  seen: Record<string, number>
}

export interface Fields {
  [key: string]: unknown
}

export interface EventData {
  turn?: Fields & { id: string; status: string; artifacts: string | null }
  action?: Fields & { call_id: string; type: string; turn_id: string }
  call?: Fields & { call_id: string; outcome: string; attempts: number; turn_id: string }
  session?: Fields & { status: string; updated_at?: number }
  payload?: Fields
  item?: Fields
  artifacts?: Fields[] | null
  artifacts_skipped?: Fields[]
  seq?: number | null
}

/** What a handler or a tool was sent, and what became of it. */
export interface Exchange {
  /** The last part of the path: the handler's or the tool's name. */
  name: string
  /** `webhook-id`. */
  id: string
  headers: IncomingHttpHeaders
  raw: string
  /** Steady milliseconds. */
  at: number
  /** Secrets whose signature fits, as the public library judges. */
  signedWith: string[]
  /** The status that was sent in full; null while it goes on, or when it was cut. */
  answered: number | null
  /** Steady milliseconds: when it was answered, or its connection closed; null while it goes on. */
  endedAt: number | null
}

export interface Callback extends Exchange {
  events: Event[]
}

export interface ToolRun extends Exchange {
  call: Fields & {
    call_id: string
    name: string
    arguments: unknown
    session_id: string
    attempt: number
    uncertain: boolean
  }
}

/** What to do with a request; an empty answer is 200 without a body. */
export interface Answer {
  status?: number
  headers?: Record<string, string>
  body?: string
  /** Milliseconds before the answer. */
  delay?: number
  /** Never answers; the connection stays open. */
  hang?: true
  /** Cuts the connection instead of answering. */
  reset?: true
  /** Dies in the middle of the answer. */
  torn?: true
  /** These bytes in place of an answer; then the connection closes. */
  raw?: string
}

/**
 * An application that takes callbacks and runs tools, records all of them, and sends the answers of
 * a test.
 */
export class App implements AsyncDisposable {
  readonly callbacks: Callback[] = []
  readonly runs: ToolRun[] = []
  /** `nth`: which request this is with its `webhook-id`, from 1. */
  handle: (callback: Callback, nth: number) => Answer | Promise<Answer> = () => ({})
  run: (run: ToolRun, nth: number) => Answer | Promise<Answer> = (run) => ({
    body: `${run.call.name} says ${JSON.stringify(run.call.arguments)}`,
  })
  readonly #counts = new Map<string, number>()
  #listening: Listening
  readonly #port: number

  private constructor(listening: Listening) {
    this.#listening = listening
    this.#port = listening.port
  }

  static async start(): Promise<App> {
    let app: App | undefined
    // It closes and opens the same port again, which no other program may use meanwhile.
    const port = await freePort()
    const listening = await listen((request, response) => void app?.receive(request, response), port)
    app = new App(listening)
    return app
  }

  handlerUrl(name: string): string {
    return `${this.#listening.url}/events/${name}`
  }

  toolUrl(name: string): string {
    return `${this.#listening.url}/tools/${name}`
  }

  /** Closes its port, so that it is unreachable. */
  async disconnect(): Promise<void> {
    await this.#listening[Symbol.asyncDispose]()
  }

  async back(): Promise<void> {
    this.#listening = await listen((request, response) => void this.receive(request, response), this.#port)
  }

  /** Every event that a handler answered 2xx, once for each answer, in the order of arrival. */
  delivered(handler = 'app'): Event[] {
    return this.callbacks
      .filter(({ name, answered }) => name === handler && answered !== null && answered < 300)
      .flatMap(({ events }) => events)
  }

  /** Events as they came, whatever was answered. */
  seen(handler = 'app'): Event[] {
    return this.callbacks.filter(({ name }) => name === handler).flatMap(({ events }) => events)
  }

  async receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer)
    } catch {
      // The sender closed the connection; an incomplete request was not received.
      return
    }
    const raw = Buffer.concat(chunks).toString()
    const [, kind, name = ''] = (request.url ?? '').split('/')
    const id = String(request.headers['webhook-id'] ?? '')
    const exchange: Exchange = {
      name,
      id,
      headers: request.headers,
      raw,
      at: performance.now(),
      signedWith: signersOf(raw, request.headers),
      answered: null,
      endedAt: null,
    }
    response.on('close', () => (exchange.endedAt = performance.now()))
    const nth = (this.#counts.get(`${name}/${id}`) ?? 0) + 1
    this.#counts.set(`${name}/${id}`, nth)
    const body = JSON.parse(raw) as unknown
    if (kind === 'events') {
      const events = (Array.isArray(body) ? body : [body]).map(eventOf)
      const callback = Object.assign(exchange, { events })
      this.callbacks.push(callback)
      await answer(callback, response, await this.handle(callback, nth))
    } else {
      const run = Object.assign(exchange, { call: body as ToolRun['call'] })
      this.runs.push(run)
      await answer(run, response, await this.run(run, nth))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listening[Symbol.asyncDispose]()
  }
}

async function answer(exchange: Exchange, response: ServerResponse, said: Answer): Promise<void> {
  if (said.delay !== undefined) await pause(said.delay)
  if (said.hang === true) return
  if (said.reset === true) return void response.socket?.resetAndDestroy()
  if (said.raw !== undefined) return void response.socket?.end(said.raw)
  const { status = 200, headers = {}, body = '' } = said
  response.writeHead(status, { 'content-type': 'text/plain', ...headers })
  if (said.torn === true) {
    response.write(body.slice(0, body.length / 2), () => response.socket?.resetAndDestroy())
    return
  }
  // What could not be written was not answered.
  if (response.destroyed || response.socket?.destroyed === true) return
  exchange.answered = status
  response.end(body)
}

/** CloudEvents carry the same, one level down. */
function eventOf(value: unknown): Event {
  const body = value as Fields
  if (body['specversion'] === undefined) return value as Event
  const { id, type, time, data } = body
  return { id, type, timestamp: time, ...(data as Fields) } as Event
}

/** One signature is of one secret. One that does not fit costs the library an error with its stack. */
function signersOf(raw: string, headers: IncomingHttpHeaders): string[] {
  const secrets = [SECRET, NEXT_SECRET]
  if (String(headers['webhook-signature']).includes(' '))
    return secrets.filter((one) => fits(one, raw, headers))
  const signer = secrets.find((one) => fits(one, raw, headers))
  return signer === undefined ? [] : [signer]
}

function fits(secret: string, raw: string, headers: IncomingHttpHeaders): boolean {
  try {
    new Webhook(secret).verify(raw, headers as Record<string, string>)
    return true
  } catch {
    return false
  }
}
