import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import {
  actionRaw,
  callOf,
  frameFact,
  readingOf,
  sessionRaw,
  acknowledgeFirst,
  text,
  turnFact,
  turnRaw,
} from './seed.ts'
import { dataOf, startAdmin, type Running } from './running.ts'

let running: Running

beforeAll(async () => {
  running = await startAdmin({
    async seed(store) {
      await store.settings.registerHandlers([
        { name: 'app', ordered: true, events: ['turn.*'] },
        { name: 'audit', ordered: true, events: ['*'] },
      ])
      for (const [index, id] of ['s-a', 's-b', 's-c'].entries()) {
        await store.log.commit({ readings: [readingOf(sessionRaw(id), { at: 1000 + index })] })
      }
      const waiting = sessionRaw('s-d', {
        status: 'requires_action',
        required_actions: [actionRaw('call_1')],
      })
      const turn = turnRaw('turn_1', 's-d')
      const calls = [callOf('call_1', 's-d', { receivedAt: 1 }), callOf('call_2', 's-d', { receivedAt: 2 })]
      const committed = await store.log.commit({
        readings: [
          readingOf(waiting, { turns: [turn], calls, facts: [turnFact('turn.completed', turn)], at: 2000 }),
        ],
      })
      await store.log.commit({ facts: [frameFact('9007199254740993', 's-d'), frameFact('12', 's-a')] })
      await acknowledgeFirst(store, committed, 'app', 'dead')
    },
  })
})
afterAll(() => running.stop())

describe('lists', () => {
  it('page through everything once, and say at each page whether there is more', async () => {
    const seen: unknown[] = []
    let after = ''
    for (let pages = 1; ; pages++) {
      const reply = await running.get(`/api/sessions?limit=2${after === '' ? '' : `&after=${after}`}`)
      expect(reply.status).toBe(200)
      expect(reply.json['object']).toBe('list')
      seen.push(...dataOf(reply).map((session) => session['id']))
      after = text(reply.json['last_id'])
      expect(reply.json['has_more']).toBe(pages === 1)
      if (reply.json['has_more'] !== true) break
    }
    expect(seen).toEqual(['s-d', 's-c', 's-b', 's-a'])
  })

  it('give an empty page for an unknown cursor', async () => {
    for (const path of ['events', 'sessions', 'calls', 'deliveries', 'handlers', 'tools']) {
      const reply = await running.get(`/api/${path}?after=nowhere`)
      expect(reply.json).toEqual({ object: 'list', data: [], has_more: false, last_id: '' })
    }
  })

  it.each(['limit=0', 'limit=101', 'limit=ten', 'limit=1e999', 'limit=', 'limit=1&limit=2'])(
    'refuse %s',
    async (query) => {
      const reply = await running.get(`/api/events?${query}`)
      expect(reply.status).toBe(400)
      expect(reply.headers['content-type']).toBe('application/problem+json')
      expect(reply.json['detail']).toMatch(/limit/)
    },
  )

  it('refuse an unknown query parameter and name the nearest', async () => {
    const reply = await running.get('/api/deliveries?handlr=app&__proto__=1')
    expect(reply.status).toBe(400)
    expect(reply.json['detail']).toMatch(
      /unknown query parameter "handlr"\. Did you mean "handler"\? Accepted: limit, /,
    )
    expect(reply.json['errors']).toHaveLength(2)
  })
})

describe('GET /api/events', () => {
  it('shows facts as callbacks do, with every digit of a seq', async () => {
    const reply = await running.get('/api/events?session_id=s-d&order=asc')
    expect(reply.text).toContain('"seq":"9007199254740993"')
    const [completed, message] = dataOf(reply)
    expect(completed).toMatchObject({
      type: 'turn.completed',
      session_id: 's-d',
      seq: null,
      data: { turn: { id: 'turn_1', later_field: { kept: true } }, session: { status: 'idle' } },
      seen: { webhook: expect.any(Number) },
    })
    expect(text(completed?.['timestamp'])).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/)
    expect(message).toMatchObject({
      id: expect.stringMatching(/^evt_/),
      type: 'agent.message',
      data: {
        internal_type: 'msg',
        payload: { text: '<b>hi</b>' },
        seq: '9007199254740993',
        session: { title: 'title of s-d' },
      },
      seen: { stream: expect.any(Number) },
    })
  })

  it('follows the log as it grows, ascending after the last id', async () => {
    const newest = await running.get('/api/events?limit=1')
    const last = text(newest.json['last_id'])
    expect(dataOf(await running.get(`/api/events?order=asc&after=${last}`))).toEqual([])
    await running.store.log.commit({ facts: [frameFact('13', 's-b')] })
    const added = dataOf(await running.get(`/api/events?order=asc&after=${last}`))
    expect(added.map((fact) => fact['session_id'])).toEqual(['s-b'])
  })

  it('filters by type', async () => {
    const found = dataOf(await running.get('/api/events?type=turn.completed'))
    expect(found.map((fact) => fact['type'])).toEqual(['turn.completed'])
  })
})

describe('GET /api/sessions', () => {
  it('filters by status and shows what is required', async () => {
    const found = dataOf(await running.get('/api/sessions?status=requires_action'))
    expect(found).toEqual([
      {
        id: 's-d',
        status: 'requires_action',
        title: 'title of s-d',
        metadata: { order: '42' },
        created_at: 1_700_000_000_000,
        updated_at: 1_700_000_001_000,
        required_actions: [actionRaw('call_1')],
        at_rest: false,
        first_seen_at: 2000,
        read_at: 2000,
        deleted_at: null,
      },
    ])
  })

  it('shows one with its turns and calls, and answers 404 for one that is not known', async () => {
    const { json } = await running.get('/api/sessions/s-d')
    expect(json).toMatchObject({
      id: 's-d',
      turns: [{ id: 'turn_1', later_field: { kept: true } }],
      calls: [{ call_id: 'call_2' }, { call_id: 'call_1' }],
      resource: { object: 'session' },
    })
    const missing = await running.get('/api/sessions/unknown%2F..')
    expect(missing.status).toBe(404)
    expect(missing.json['instance']).toBe('/api/sessions/unknown%2F..')
  })
})

describe('GET /api/calls, /api/deliveries, /api/handlers, /api/tools', () => {
  it('shows calls with all their times', async () => {
    const [first] = dataOf(await running.get('/api/calls?state=received&session_id=s-d'))
    expect(Object.keys(first ?? {})).toEqual(
      (
        'call_id name session_id turn_id state outcome attempts answer error created_at expires_at received_at ' +
        'started_at finished_at ended_at'
      ).split(' '),
    )
    expect(dataOf(await running.get('/api/calls?state=answered'))).toEqual([])
    expect((await running.get('/api/calls?state=lost')).json['detail']).toMatch(
      /"state" must be one of received, /,
    )
  })

  it('shows deliveries by status and handler, with each attempt', async () => {
    const dead = dataOf(await running.get('/api/deliveries?status=dead&handler=app'))
    expect(dead).toEqual([
      {
        id: expect.stringMatching(/^dlv_/),
        fact_id: expect.stringMatching(/^evt_/),
        type: 'turn.completed',
        handler: 'app',
        session_id: 's-d',
        status: 'dead',
        attempts: [{ at: expect.any(Number), error: 'refused', ms: 3 }],
        last_answer: null,
        next_at: null,
      },
    ])
    const pending = dataOf(await running.get('/api/deliveries?status=pending&handler=audit&session_id=s-d'))
    expect(pending.map((delivery) => delivery['type'])).toEqual(['agent.message', 'turn.completed'])
    expect(dataOf(await running.get('/api/deliveries?since=1970-01-01'))).not.toEqual([])
    expect(dataOf(await running.get('/api/deliveries?since=9999-01-01'))).toEqual([])
    expect((await running.get('/api/deliveries?since=2h')).status).toBe(400)
  })

  it('shows handlers with their backlog', async () => {
    expect(dataOf(await running.get('/api/handlers'))).toMatchObject([
      {
        name: 'app',
        state: 'up',
        since: 1,
        last_error: null,
        pending: 0,
        dead: 1,
        oldest_pending_at: null,
      },
      {
        name: 'audit',
        state: 'paused',
        since: 5,
        last_error: 'answered 410',
        oldest_pending_at: expect.any(Number),
      },
    ])
    const page = await running.get('/api/handlers?limit=1')
    expect(page.json).toMatchObject({ has_more: true, last_id: 'app' })
    expect(dataOf(await running.get('/api/handlers?after=app')).map(({ name }) => name)).toEqual(['audit'])
  })

  it('shows the tools array to declare', async () => {
    expect(dataOf(await running.get('/api/tools')).map(({ name, type }) => [name, type])).toEqual([
      ['lookup_order', 'function'],
      ['refund', 'function'],
    ])
  })
})

describe('a page of large rows', () => {
  it('holds at most four million characters, and shows that more rows follow', async () => {
    const large = await startAdmin({
      async seed(store) {
        const text = 'x'.repeat(1024 * 1024)
        for (let seq = 1; seq <= 9; seq++) {
          const body = `{"type":"agent.message","seq":${seq},"payload":{"text":"${text}"}}`
          await store.log.commit({ facts: [frameFact(String(seq), 's-a', { body })] })
        }
        const wide = sessionRaw('s-wide', { metadata: { text } })
        for (const id of ['s-1', 's-2', 's-3', 's-4', 's-5', 's-6'])
          await store.log.commit({ readings: [readingOf({ ...wide, id })] })
      },
    })
    onTestFinished(() => large.stop())
    for (const [path, rows] of [
      ['/api/events', 9],
      ['/api/sessions', 6],
    ] as const) {
      const seen: unknown[] = []
      for (let after = '', more: unknown = true; more === true;) {
        const reply = await large.get(`${path}?limit=100${after === '' ? '' : `&after=${after}`}`)
        const page = dataOf(reply)
        expect(page.length).toBeLessThanOrEqual(4)
        seen.push(...page.map((row) => row['id']))
        ;({ has_more: more, last_id: after } = reply.json as { has_more: unknown; last_id: string })
      }
      expect([path, new Set(seen).size, seen.length]).toEqual([path, rows, rows])
    }
  })
})
