import { request as httpRequest } from 'undici'
import { createRelay } from '../../src/sidecar/admin/relay/relay.ts'
import { isObject, type Json } from '../../src/std/json.ts'
import type { Random } from '../../src/std/ports.ts'
import type { Store } from '../../src/core/store.ts'
import { startAdmin, send, type Reply } from '../admin/running.ts'
import { clock, frameFact, memoryLog, readingOf, sessionRaw, turnFact, turnRaw } from '../admin/seed.ts'
import { deafObserver } from '../support/ports.ts'
import { mutateJson, mutateText, pick, whole } from './mutate.ts'
import { Tally } from './tally.ts'

/** Requests at once. */
const TOGETHER = 16

const READINGS = ['status', 'events', 'sessions', 'sessions/s-a', 'calls', 'deliveries', 'handlers', 'tools', 'turns', 'actions', 'nowhere'] // prettier-ignore
const QUERY = ['limit', 'after', 'order', 'type', 'status', 'handler', 'session_id', 'q', 'state', '__proto__', 'constructor', ''] // prettier-ignore
const VALUES = ['10', '1e999', 'asc', 'desc', 'turn.*', 'dead', 'pending', 'app', 's-a', 'evt_1', '1', 'working'] // prettier-ignore
const ACTIONS: readonly (readonly [string, Json])[] = [
  ['deliveries/evt_1:app/retry', {}],
  ['deliveries/retry', { handler: 'app', since: 1, until: 2, dry_run: true }],
  ['replay', { handler: 'app', from_seq: '1', since: '2026-01-01T00:00:00Z', dry_run: true }],
  ['handlers/app/pause', {}],
  ['handlers/app/resume', {}],
  ['handlers/app/test', { type: 'turn.completed', data: { turn: { id: 't' } } }],
  ['calls/call_1/answer', { output: 'text' }],
]
const TYPES = ['application/json', 'application/json; charset=utf-8', 'text/plain', 'application/x-www-form-urlencoded', ';', ''] // prettier-ignore

/** Queries and bodies at the admin API: an answer, or a problem document that says nothing of our insides. */
export async function attackAdmin(count: number, random: Random): Promise<Tally> {
  const running = await startAdmin({ seed })
  return await ask(count, running, (base) => {
    if (random.next() < 0.5) return send(`${base}/api/${addressOf(random)}`, { method: 'GET' })
    const [path, body] = pick(random, ACTIONS)
    return send(`${base}/api/${random.next() < 0.8 ? path : mutatePath(path, random)}`, {
      method: 'POST',
      headers: { 'content-type': pick(random, TYPES) },
      body: mutateJson(body, random),
    })
  })
}

/** Cursors at the relay: refused, or a stream. */
export async function attackRelay(count: number, random: Random): Promise<Tally> {
  let store: Store | null = null
  const relay = createRelay({
    store: () => {
      if (store === null) throw new Error('there is no store yet')
      return store.read
    },
    clock,
    log: memoryLog(),
    observer: deafObserver,
  })
  const running = await startAdmin({ seed, relay })
  store = running.store
  return await ask(count, running, async (base) => {
    const cursor = mutateText(pick(random, ['0', '41', '9007199254740993', '']), random)
    const path = random.next() < 0.5 ? '/v1/events' : `/v1/sessions/${mutatePath('s-a', random)}/events`
    const inQuery = random.next() < 0.5
    const answer = await httpRequest(`${base}${path}${inQuery ? `?last_event_id=${encode(cursor)}` : ''}`, {
      headers: inQuery ? {} : { 'last-event-id': cursor.replaceAll(/[^\t\u0020-\u007e\u0080-\u00ff]/g, '?') },
    })
    const { statusCode: status, headers, body } = answer
    if (headers['content-type'] === 'text/event-stream') {
      body.on('error', () => undefined).destroy()
      return { status, headers, text: '', json: {} }
    }
    const text = await body.text()
    const json: unknown = JSON.parse(text)
    return { status, headers, text, json: isObject(json) ? json : {} }
  })
}

async function seed(store: Store): Promise<void> {
  await store.settings.registerHandlers([{ name: 'app', ordered: true, events: ['*'] }])
  await store.log.commit({ readings: [readingOf(sessionRaw('s-a'), { turns: [turnRaw('turn_1', 's-a')] })] })
  await store.log.commit({
    facts: [
      frameFact('41', 's-a'),
      frameFact('9007199254740993', 's-b'),
      turnFact('turn.completed', turnRaw('turn_1', 's-a')),
    ],
  })
}

/** @throws on an answer that no route gives on purpose. */
async function ask(
  count: number,
  running: Awaited<ReturnType<typeof startAdmin>>,
  request: (base: string) => Promise<Reply>,
): Promise<Tally> {
  const tally = new Tally()
  try {
    for (let done = 0; done < count; done += TOGETHER) {
      const size = Math.min(TOGETHER, count - done)
      const replies = await Promise.all(Array.from({ length: size }, () => request(running.base)))
      for (const reply of replies) tally.note(judge(reply))
    }
    const failed = running.log.lines.find(({ level }) => level === 'error')
    if (failed !== undefined) throw new Error(`it logged ${failed.message}`, { cause: failed.details })
    return tally
  } finally {
    await running.stop()
  }
}

function judge({ status, headers, text, json }: Reply): string {
  if (status < 400) return 'answered'
  const wrong =
    status >= 500 ||
    headers['content-type'] !== 'application/problem+json' ||
    json['status'] !== status ||
    /\n *at |node_modules/.test(text)
  if (wrong) throw new Error(`${status} ${text}`)
  return `refused with ${status}`
}

function addressOf(random: Random): string {
  const path = pick(random, READINGS)
  const query = Array.from({ length: whole(random, 4) }, () => {
    const value = random.next() < 0.5 ? pick(random, VALUES) : mutateText(pick(random, VALUES), random)
    return `${encode(pick(random, QUERY))}=${encode(value)}`
  })
  return `${random.next() < 0.8 ? path : mutatePath(path, random)}?${query.join('&')}`
}

/** A path that a client can send at all. */
function mutatePath(path: string, random: Random): string {
  return mutateText(path, random)
    .split('/')
    .map((part) => (random.next() < 0.5 ? encode(part) : part.replaceAll(/[^\w.%-]/g, '')))
    .join('/')
}

function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}
