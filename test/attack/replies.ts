import type { HttpRequest, HttpReply, Random } from '../../src/std/ports.ts'
import { Bus } from '../../src/core/bus.ts'
import { fanOut } from '../../src/core/observer.ts'
import { plainTracer } from '../../src/core/trace.ts'
import { callbackText, dataText } from '../../src/sidecar/deliver/targets/body.ts'
import { createService } from '../../src/client/service.ts'
import { createEngine } from '../../src/sidecar/engine.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { fakeHttp, keepingLog } from '../support/ports.ts'
import { plainDocument } from '../support/service/documents.ts'
import { SPEC } from '../tools/world.ts'
import { mutateJson, pick } from './mutate.ts'
import { Tally } from './tally.ts'

const SERVICE = 'https://service.example'
const TOOL = 'https://tool.example/'
/** Replies that one sidecar is lied to with. */
const LIES = 400
/** Fewer true replies than this are sent before the change. */
const AFTERWARDS = 1e6
/** Between two looks at everything, milliseconds of virtual time. */
const SWEEP = 20_000

/**
 * False replies of the service, to the whole sidecar: no harm, and the true state is reported once
 * they stop.
 */
export async function attackReplies(count: number, random: Random): Promise<Tally> {
  const tally = new Tally()
  for (let done = 0; done < count; done += LIES) await lieTo(Math.min(LIES, count - done), random, tally)
  return tally
}

async function lieTo(lies: number, random: Random, tally: Tally): Promise<void> {
  const clock = new VirtualClock()
  const log = keepingLog()
  const store = openSqliteStore({ path: ':memory:', clock, log })
  let left = lies
  const { http } = fakeHttp((request) => {
    if (request.url === TOOL) return reply('"42"')
    checkAddress(request)
    const truth = truthOf(request, left < -AFTERWARDS)
    if (left-- <= 0 || request.url.endsWith('openapi.json')) return truth
    tally.note(request.method === 'GET' ? 'replies to a reading' : 'replies to an action')
    return lieAbout(truth, random)
  })
  const service = createService({ baseUrl: SERVICE, token: 'svc_pat_x', http, clock, random, log })
  const engine = createEngine({
    service,
    store,
    http,
    clock,
    random,
    log,
    observer: fanOut([]),
    bus: new Bus(),
    tracer: plainTracer(random),
    handlers: [],
    tools: [{ ...SPEC, target: { kind: 'http', url: TOOL, secrets: { current: [] } } }],
    source: SERVICE,
    scope: null,
    startFrom: 'beginning',
    stream: { enabled: false },
    polling: { enabled: true, interval: 5000, sweep: SWEEP },
    webhooks: { enabled: false, publicUrl: null, secrets: { current: [] }, tolerance: 300_000 },
  })
  try {
    await service.discover()
    await engine.start()
    await engine.subscription?.start()
    for (let rounds = 0; left > 0; rounds++) {
      if (rounds > lies) throw new Error('it does not ask any more')
      await clock.advance(SWEEP)
      // A lie of 401 stops everything until there is another token.
      service.setToken(`svc_pat_${rounds}`)
    }
    service.setToken('svc_pat_last')
    await clock.advance(10 * SWEEP)
    left = -AFTERWARDS - 1
    await clock.advance(10 * SWEEP)
    const broken = log.lines.find(
      ({ details }) => details['err'] instanceof TypeError || details['err'] instanceof RangeError,
    )
    if (broken !== undefined) throw new Error(broken.message, { cause: broken.details['err'] })
    const facts = (await store.read.facts({ limit: 100_000, order: 'asc' })).rows
    for (const fact of facts)
      JSON.parse(callbackText(fact, dataText(fact, null), { attempt: 1, handler: 'app' }))
    tally.note('facts', facts.length)
    const session = await store.read.session('ses_1')
    const reported = facts.some(({ type, turnId }) => type === 'turn.completed' && turnId === LAST_TURN.id)
    if (session?.session.status !== 'idle' || !reported)
      throw new Error(`in the end ${JSON.stringify(session)}`)
  } finally {
    const stopped = engine.stop(0)
    await clock.advance(1000)
    await stopped
    service.stop()
    await store.close()
  }
}

const ACTION = { type: 'function_call', turn_id: 'trn_2', call_id: 'call_1', name: SPEC.name, arguments: { a: 1 }, created_at: 3, expires_at: null } // prettier-ignore
const SESSIONS = [
  { object: 'session', id: 'ses_1', status: 'idle', created_at: 1, updated_at: 9, title: 'One', metadata: { a: 'b' }, required_actions: [] },
  { object: 'session', id: 'ses_2', status: 'requires_action', created_at: 2, updated_at: 3, title: null, metadata: {}, required_actions: [ACTION] },
] // prettier-ignore
const TURNS: Readonly<Record<string, object>> = {
  ses_1: { object: 'turn', id: 'trn_1', session_id: 'ses_1', status: 'completed', created_at: 2, started_at: 2, completed_at: 4, artifacts: 'ready', error: null },
  ses_2: { object: 'turn', id: 'trn_2', session_id: 'ses_2', status: 'working', created_at: 2, started_at: 2, completed_at: null, artifacts: null, error: null },
} // prettier-ignore
/** What happens once the lies are over. */
const LAST_TURN = { object: 'turn', id: 'trn_3', session_id: 'ses_1', status: 'completed', created_at: 20, started_at: 20, completed_at: 30, artifacts: 'ready', error: null } // prettier-ignore
const ITEM = { object: 'item', id: 'itm_1', session_id: 'ses_1', type: 'message', created_at: 3, detail: { event: 'agent.message', text: 'hi' } } // prettier-ignore

function truthOf({ url, method, body }: HttpRequest, later: boolean): HttpReply {
  const { pathname, searchParams } = new URL(url)
  const [, , kind, id, part] = pathname.split('/').map(decodeURIComponent)
  const list = (data: readonly object[]): HttpReply => (searchParams.has('after') ? page([]) : page(data))
  if (kind === 'openapi.json') return reply(JSON.stringify(plainDocument))
  if (kind === 'health')
    return reply('{"object":"health","usable":true,"scopes":["sessions:read"],"missing_scopes":[]}')
  if (kind !== 'sessions' || method !== 'GET')
    return reply(body === undefined ? '{}' : '{"outcome":"delivered"}')
  const sessions = later ? SESSIONS.map((session) => ({ ...session, updated_at: 40 })) : SESSIONS
  if (id === undefined)
    return list(sessions.filter(({ status }) => (searchParams.get('status') ?? status) === status))
  const session = sessions.find((one) => one.id === id)
  if (session === undefined) return { ...reply('{"error":{"code":"not_found","message":"no"}}'), status: 404 }
  if (part === undefined) return reply(JSON.stringify(session))
  const turn = later && session.id === LAST_TURN.session_id ? LAST_TURN : TURNS[session.id]
  if (part === 'turns')
    return pathname.split('/').length > 5
      ? reply(JSON.stringify(turn))
      : list(turn === undefined ? [] : [turn])
  return part === 'items' ? list([ITEM]) : list([])
}

function page(data: readonly object[]): HttpReply {
  return reply(JSON.stringify({ object: 'list', data, has_more: false, last_id: null }))
}

function reply(body: string): HttpReply {
  return { status: 200, headers: { date: 'Fri, 21 Nov 2025 05:00:00 GMT' }, body, truncated: false }
}

const STATUSES = [
  200, 200, 200, 200, 200, 200, 200, 200, 204, 302, 400, 401, 403, 404, 409, 410, 429, 500, 502, 503,
]
const RETRY_AFTER = ['0', '1', '7', '1e9', '-1', 'Fri, 21 Nov 2025 05:00:09 GMT', 'soon', '']

function lieAbout(truth: HttpReply, random: Random): HttpReply {
  const value: unknown = JSON.parse(truth.body)
  const status = pick(random, STATUSES)
  const headers = { ...truth.headers }
  if (random.next() < 0.1) headers['retry-after'] = pick(random, RETRY_AFTER)
  // Beside a date in Retry-After a date of 1970 asks for the longest wait that is obeyed, a day: 4,000 sweeps of nothing.
  const dated = headers['retry-after']?.endsWith('GMT') === true
  if (random.next() < 0.05 && !dated)
    headers['date'] = pick(random, ['', 'Fri, 21 Nov 2525 05:00:00 GMT', 'Thu, 01 Jan 1970 00:00:00 GMT'])
  return { status, headers, body: mutateJson(value, random), truncated: random.next() < 0.02 }
}

/** @throws when a request goes to another place than the service, or its path is not one that an id can be part of. */
function checkAddress({ url, headers }: HttpRequest): void {
  const { origin, pathname } = new URL(url)
  if (origin !== SERVICE || !pathname.startsWith('/v1/')) throw new Error(`it asked ${url}`)
  const sent = new Headers(headers)
  if ([...sent.values()].some((value) => /[\r\n]/.test(value)))
    throw new Error(`it sent ${JSON.stringify(headers)}`)
}
