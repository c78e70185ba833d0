import { request } from 'undici'
import { onTestFinished } from 'vitest'
import { startEmulator, type Emulator, type EmulatorOptions } from '../../src/emulator/index.ts'
import { profileA } from '../../src/emulator/profile/a.ts'
import { profileB } from '../../src/emulator/profile/b.ts'
import type { OpenDetails } from '../../src/emulator/profile/details.ts'
import type { ProfileName } from '../support/full.ts'
import { descriptionOf } from './described.ts'

export { PROFILES, type ProfileName } from '../support/full.ts'

export interface Reply {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  body: Fields
}

/** A JSON object; a test says of each field what it should be. */
export type Fields = Record<string, unknown>

/** The entries of a list, or of a field that is one. */
export function rowsOf(value: unknown): Fields[] {
  const rows: unknown = Array.isArray(value) ? value : (value as Fields)['data']
  return rows as Fields[]
}

/** `error.code` of a refusal. */
export function codeOf(reply: Reply): string {
  return String((reply.body['error'] as Fields | undefined)?.['code'])
}

/** `error.message` of a refusal. */
export function messageOf(reply: Reply): string {
  return String((reply.body['error'] as Fields | undefined)?.['message'])
}

/** An emulator and the words that its profile uses, so that one test serves both. */
export class Bench {
  readonly emulator: Emulator
  readonly details: OpenDetails
  token: string

  constructor(emulator: Emulator, details: OpenDetails) {
    this.emulator = emulator
    this.details = details
    this.token = emulator.token
  }

  /** @throws {Error} when the reply is not what the description promises. */
  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Reply> {
    const response = await request(this.emulator.baseUrl + path, {
      method: method as 'GET',
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.body.text()
    const type = String(response.headers['content-type'] ?? '')
    const description = await descriptionOf(this.details.name)
    const wrong = description.faultsOf(method, path, response.statusCode, type, text)
    if (wrong.length > 0)
      throw new Error(`${method} ${path}: ${wrong.join('; ')}; it was ${text.slice(0, 500)}`)
    const json = type.includes('json')
    return {
      status: response.statusCode,
      headers: response.headers,
      text,
      body: (json && text !== '' ? JSON.parse(text) : {}) as Fields,
    }
  }

  async session(body: unknown = {}): Promise<string> {
    const reply = await this.call('POST', '/v1/sessions', body)
    if (reply.status !== 201) throw new Error(reply.text)
    return String(reply.body['id'])
  }

  message(text: string, steer = false): Record<string, string> {
    const a = this.details.name === 'a'
    const plain = a ? 'input.message' : 'user_message'
    return { type: steer ? 'input.steer' : plain, [a ? 'text' : 'content']: text }
  }

  send(sessionId: string, text: string, headers: Record<string, string> = {}): Promise<Reply> {
    return this.call('POST', this.path('message', sessionId), this.message(text), headers)
  }

  steer(sessionId: string, text: string): Promise<Reply> {
    return this.call('POST', this.path('message', sessionId), this.message(text, true))
  }

  answer(sessionId: string, body: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    return this.call('POST', this.path('answer', sessionId), body, headers)
  }

  path(name: keyof OpenDetails['paths'], sessionId: string, id = ''): string {
    return this.details.paths[name]
      .replace('{session_id}', sessionId)
      .replace('{turn_id}', id)
      .replace('{artifact_id}', id)
  }

  async read(sessionId: string): Promise<Fields> {
    return (await this.call('GET', `/v1/sessions/${sessionId}`)).body
  }

  async turns(sessionId: string): Promise<Fields[]> {
    return rowsOf((await this.call('GET', `/v1/sessions/${sessionId}/turns?order=asc`)).body)
  }

  async items(sessionId: string): Promise<Fields[]> {
    return rowsOf((await this.call('GET', `/v1/sessions/${sessionId}/items?order=asc&limit=100`)).body)
  }

  /** Waits until the session is in `status` and gives it. */
  reach(sessionId: string, status: string): Promise<Fields> {
    return until(async () => {
      const session = await this.read(sessionId)
      return session['status'] === status ? session : undefined
    })
  }

  /** Waits until the session's newest turn has settled artifacts and gives the turn. */
  settle(sessionId: string): Promise<Fields> {
    return until(async () => {
      const turn = (await this.turns(sessionId)).at(-1)
      return ['ready', 'partial', 'failed'].includes(String(turn?.['artifacts'])) ? turn : undefined
    })
  }

  /** Waits until the session waits for something and gives the entries. */
  async actions(sessionId: string): Promise<Fields[]> {
    return rowsOf((await this.reach(sessionId, 'requires_action'))['required_actions'])
  }

  /** The types of a session's persisted events so far. */
  events(sessionId: string): string[] {
    return this.emulator
      .ledger()
      .events.filter((event) => event.session_id === sessionId)
      .map((event) => event.type)
  }
}

/** Starts an emulator that ends with the test. */
export async function open(openDetails: ProfileName = 'a', options: EmulatorOptions = {}): Promise<Bench> {
  const emulator = await startEmulator({ openDetails, ...options })
  onTestFinished(() => emulator.close())
  return new Bench(emulator, openDetails === 'a' ? profileA : profileB)
}

/** Tries until `find` gives something, and fails after 20 s: a burst of 20,000 frames takes one, and on a slow machine six. */
export async function until<T>(find: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const limit = performance.now() + 20_000
  for (;;) {
    const found = await find()
    if (found !== undefined) return found
    if (performance.now() > limit) throw new Error(`still waiting: ${find.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
