import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { listen } from '../../support/listen.ts'
import { now } from '../clock.ts'
import { encodeFrame, OLD_AT, oldSessionId, SESSIONS } from '../frames.ts'
import { serve } from './serve.ts'

/** A service that costs as little as can be: frames are encoded beforehand, sessions are idle and have no turns. */

/** Frames of one write. */
const CHUNK = 32
/** The age of a turn's end, milliseconds: its session is idle. */
const REST = 7_200_000

const Load = Type.Object({
  frames: Type.Integer(),
  /** The lowest seq. */
  first: Type.Integer(),
  /** Whether a reader with a cursor gets them at once, as a replay. */
  replay: Type.Boolean(),
  /** Sessions that ended long ago. */
  oldSessions: Type.Integer(),
})
const Pace = Type.Object({ perSecond: Type.Number() })

let frames: Buffer[] = []
let replay = false
let oldSessions = 0
let stream: ServerResponse | null = null
/** The last page of the list of sessions was sent. */
let listed = false

const listening = await listen(handle)

serve({
  address: () => listening.url,
  load(argument) {
    const load = Value.Parse(Load, argument)
    frames = Array.from({ length: load.frames }, (_, index) => encodeFrame(load.first + index))
    replay = load.replay
    oldSessions = load.oldSessions
    listed = false
    stream?.destroy()
    stream = null
    globalThis.gc?.()
  },
  connected: () => stream !== null,
  listed: () => listed,
  send,
  async pace(argument) {
    const { perSecond } = Value.Parse(Pace, argument)
    const times: number[] = []
    const start = now()
    for (const [index, frame] of frames.entries()) {
      const wait = start + (index * 1000) / perSecond - now()
      if (wait > 0) await pause(wait)
      times.push(now())
      stream?.write(frame)
    }
    return times
  },
})

/** As fast as the reader takes them. Answers when the first was written. */
async function send(): Promise<number> {
  const reader = stream
  if (reader === null) throw new Error('the stream has no reader')
  const startedAt = now()
  for (let index = 0; index < frames.length; index += CHUNK) {
    if (reader.destroyed) throw new Error(`the reader left at frame ${index}`)
    if (!reader.write(Buffer.concat(frames.slice(index, index + CHUNK)))) await drained(reader)
  }
  return startedAt
}

function drained(reader: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      reader.off('drain', done)
      reader.off('close', done)
      resolve()
    }
    reader.on('drain', done)
    reader.on('close', done)
  })
}

function handle(request: IncomingMessage, response: ServerResponse): void {
  const { pathname: path, searchParams } = new URL(request.url ?? '', 'http://service')
  if (path === '/v1/events') return open(request, response)
  const body = path === '/v1/sessions' ? sessionsAfter(searchParams) : bodyOf(path)
  response.writeHead(body === null ? 404 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body ?? { error: { code: 'not_found', message: path, request_id: 'req_1' } }))
}

function open(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('retry: 2000\n\n')
  response.once('close', () => {
    if (stream === response) stream = null
  })
  stream = response
  // A reader that is killed in the middle is reported by the waiter for its callbacks.
  if (replay && request.headers['last-event-id'] === '0') send().catch(() => undefined)
}

function bodyOf(path: string): unknown {
  if (path === '/v1/openapi.json') return DESCRIPTION
  if (path === '/v1/health') return HEALTH
  const [, id, part] = /^\/v1\/sessions\/([^/]+)(?:\/(turns|items))?$/.exec(path) ?? []
  if (id === undefined || placeOf(id) >= SESSIONS.length + oldSessions) return null
  const at = Date.now() - REST
  return part === undefined ? session(id, at - (at % REST)) : list([])
}

/** A page of all sessions: those of the frames, then the old ones. */
function sessionsAfter(query: URLSearchParams): unknown {
  // All are idle.
  if (query.has('status')) return list([])
  const after = query.get('after')
  const known = SESSIONS.length + oldSessions
  const begin = after === null ? 0 : placeOf(after) + 1
  const end = Math.min(known, begin + Number(query.get('limit') ?? 20))
  listed ||= end === known
  const at = Date.now() - REST
  const data = Array.from({ length: end - begin }, (_, index) => {
    const id = SESSIONS[begin + index]
    if (id !== undefined) return session(id, at - (at % REST))
    return session(oldSessionId(begin + index - SESSIONS.length + 1), OLD_AT)
  })
  return list(data, end < known)
}

function placeOf(id: string): number {
  const place = SESSIONS.indexOf(id)
  return place === -1 ? SESSIONS.length + Number(id.slice(id.lastIndexOf('-') + 1)) - 1 : place
}

function list(data: { id: string }[], more = false): unknown {
  return { object: 'list', data, has_more: more, last_id: data.at(-1)?.id ?? '' }
}

function session(id: string, at: number): { id: string } & Record<string, unknown> {
  return {
    object: 'session',
    id,
    status: 'idle',
    created_at: at,
    updated_at: at,
    title: 'Bench',
    metadata: { order: '42' },
    agent: { model: 'demo' },
    environment: { type: 'sandbox', state: 'running' },
    required_actions: [],
  }
}

const HEALTH = {
  object: 'health',
  status: 'ok',
  version: 'v1',
  scopes: ['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read'],
  usable: true,
  missing_scopes: [],
}

const PAGING = ['limit', 'after', 'status'].map((name) => ({ name, in: 'query' }))
const READ = { parameters: PAGING, responses: { 200: { description: 'Read.' } } }
const DESCRIPTION = {
  openapi: '3.1.0',
  info: { title: 'Bench', version: 'v1' },
  paths: Object.fromEntries(
    [
      '/v1/health',
      '/v1/events',
      '/v1/sessions',
      '/v1/sessions/{session_id}',
      '/v1/sessions/{session_id}/turns',
    ].map((path) => [path, { get: READ }]),
  ),
}
