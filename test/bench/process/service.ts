import { channel } from 'node:diagnostics_channel'
import { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { startEmulator } from '../../../src/emulator/index.ts'
import { profileA } from '../../../src/emulator/profile/a.ts'
import { now } from '../clock.ts'
import { serve } from './serve.ts'

/** The emulator, a person who sends messages, and a watch on its sockets: what was asked, and when frames went out. */

/** Longest that a turn of ours takes, milliseconds. */
const PATIENCE = 10_000
/** Sets our own requests apart from those that are counted. */
const OURS = 'x-bench'
/** The bench is not about the service's allowance. */
const AMPLE = 1_000_000

/** How the path ends that answers are posted to. */
const ANSWERS = profileA.paths.answer.replace(/.*\//, '/')

const Turn = Type.Object({ text: Type.String() })
const Quiet = Type.Object({ ms: Type.Number() })

const emulator = await startEmulator({ limits: { readsBurst: AMPLE, readsPerSecond: AMPLE } })
const sessionId = await createSession()

let requests = 0
let lastRequestAt = 0
let requiredAt = 0
let answeredAt = 0
let ended: (() => void) | null = null

channel('http.server.request.start').subscribe((event) => {
  if (typeof event !== 'object' || event === null || !('request' in event) || !('response' in event)) return
  const { request, response } = event
  if (!(request instanceof IncomingMessage) || !(response instanceof ServerResponse)) return
  if (request.headers[OURS] !== undefined) return
  if (request.url?.startsWith('/v1/events') === true) return watch(response)
  requests++
  lastRequestAt = now()
  if (request.method === 'POST' && request.url?.endsWith(ANSWERS) === true) answeredAt = lastRequestAt
})

serve({
  address: () => ({ url: emulator.baseUrl, token: emulator.token, answerPath: profileA.paths.answer }),
  connected: () => emulator.openStreams() > 0,
  /** Plays one turn to its end. Answers the milliseconds from its call's frame to the answer; 0 without a call. */
  async turn(argument) {
    requests = requiredAt = answeredAt = 0
    const end = new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('the turn does not end')), PATIENCE)
      ended = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    await post(profileA.paths.message.replace('{session_id}', sessionId), {
      type: 'input.message',
      ...Value.Parse(Turn, argument),
    })
    await end
    return answeredAt - requiredAt
  },
  /** The requests since the turn began, once none came for a while. */
  async quiet(argument) {
    const { ms } = Value.Parse(Quiet, argument)
    while (now() - lastRequestAt < ms) await pause(ms / 10)
    return requests
  },
})

function watch(response: ServerResponse): void {
  const write = response.write.bind(response) as (chunk: unknown) => boolean
  response.write = (chunk: unknown) => {
    if (Buffer.isBuffer(chunk)) {
      if (chunk.includes('event: tool.required\n')) requiredAt = now()
      if (chunk.includes('event: turn.ended\n')) ended?.()
    }
    return write(chunk)
  }
}

async function createSession(): Promise<string> {
  const tools = [{ type: 'function', name: 'lookup_order', description: 'Finds an order', parameters: {} }]
  return Value.Parse(Type.Object({ id: Type.String() }), await post('/v1/sessions', { agent: { tools } })).id
}

async function post(path: string, body: unknown): Promise<unknown> {
  const reply = await fetch(emulator.baseUrl + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${emulator.token}`, 'content-type': 'application/json', [OURS]: '1' },
    body: JSON.stringify(body),
  })
  if (!reply.ok) throw new Error(`${path} was answered ${reply.status}: ${await reply.text()}`)
  return await reply.json()
}
