import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { tool } from '../../src/index.ts'
import { SECRET, type Fields } from '../support/app.ts'
import { CERTIFICATE } from '../support/certificate.ts'
import { PROFILES } from './engines.ts'
import { FULL, RELEASE } from '../support/full.ts'
import { listen } from '../support/listen.ts'
import { assertWhole } from '../support/oracle.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

const FIXED = 'The tool could not complete this request.'
/** Sessions, and calls of each that wait for one tool. Once, a tool with more calls than there are posts (256) stopped the others. */
const MANY = { sessions: FULL ? 15 : 2, calls: 20 }
const CALL = 'call lookup_order {"order_id":"42"}'

describe.for(PROFILES)('function tools (%s)', (details) => {
  const open = (more: Parameters<typeof Rig.open>[0] = {}) =>
    Rig.open({ details, tools: { lookup_order: {} }, ...more })
  const answersOf = (rig: Rig) => rig.emulator.ledger().answers

  test('two calls of one session run side by side, and each gets its own answer', async () => {
    await using rig = await open({ tools: { lookup_order: {}, second: {} } })
    const both = Promise.withResolvers<void>()
    rig.app.run = async ({ call }) => {
      if (rig.app.runs.length === 2) both.resolve()
      await both.promise
      return { body: `${call.name} done` }
    }
    await rig.client.start(`${CALL} & call second {"n":1}`, 'say {{last}}')
    await assertWhole(rig, { tools: ['lookup_order', 'second'] })
    expect(rig.app.runs.map(({ call }) => call.attempt)).toEqual([1, 1])
    expect(new Set(answersOf(rig).map(({ output }) => output))).toEqual(
      new Set(['lookup_order done', 'second done']),
    )
  })

  // The limit of the interface (LIM-10) is crossed by the configuration, which may have more tools than one session.
  test('32 tools, all that a session takes, are called at once and each answers its own call', async () => {
    const names = Array.from({ length: 33 }, (_, n) => `tool_${n}`)
    await using rig = await open({ tools: Object.fromEntries(names.map((name) => [name, {}])) })
    const all = Promise.withResolvers<void>()
    rig.app.run = async ({ call }) => {
      if (rig.app.runs.length === 32) all.resolve()
      await all.promise
      return { body: `${call.name} done` }
    }
    const declared = (count: number) => Object.fromEntries(names.slice(0, count).map((name) => [name, 60]))
    await expect(rig.client.withTools(declared(33))).rejects.toThrow('400')
    const session = await rig.client.withTools(declared(32))
    const called = names.slice(0, 32)
    await rig.client.send(session, called.map((name) => `call ${name} {}`).join(' & '), 'say {{last}}')
    await assertWhole(rig, { tools: called })
    expect(rig.app.runs.map(({ call }) => call.attempt)).toEqual(called.map(() => 1))
    expect(rig.app.runs.map(({ call }) => call.name).toSorted()).toEqual(called.toSorted())
    expect(new Set(answersOf(rig).map(({ output }) => output))).toEqual(
      new Set(called.map((name) => `${name} done`)),
    )
    expect(answersOf(rig)).toHaveLength(32)
  })

  test('however many calls wait for a tool that is slow, the other tools are run', async () => {
    await using rig = await open({
      tools: { lookup_order: { concurrency: 1, timeout: '19s' }, check_stock: {} },
    })
    const { client, app } = rig
    const { promise: over, resolve: end } = Promise.withResolvers<object>()
    app.run = ({ call }) => (call.name === 'lookup_order' ? over : { body: 'in stock' })
    const calls = Array.from({ length: MANY.calls }, (_, n) => `call lookup_order {"n":${n}}`)
    const sessions: string[] = []
    for (let n = 0; n < MANY.sessions; n++) sessions.push(await client.start(calls.join(' & ')))
    await until(
      'a backlog of calls',
      async () => (await rig.list('/api/calls?state=received')).length === MANY.sessions * MANY.calls - 1,
    )
    const other = await client.start('call check_stock {}')
    await rig.event('turn.settled', ({ session_id: id }) => id === other)
    expect(app.runs.map(({ call }) => call.name)).toEqual(['lookup_order', 'check_stock'])
    // They run one by one, which takes a minute where other tests run: only a release waits for it.
    for (const session of RELEASE ? [] : sessions) await client.cancel(session)
    end({})
    const ends = () => app.delivered().filter(({ type }) => type.startsWith('call.'))
    await until('the end of each call', () => ends().length === MANY.sessions * MANY.calls + 1, 150_000)
    await assertWhole(rig, { tools: ['lookup_order', 'check_stock'] })
  })

  test('a request is signed and has the ids of its call, turn and session', async () => {
    await using rig = await open()
    const session = await rig.client.create({ title: 'An order', metadata: { user: 'u1' } })
    await rig.client.send(session, CALL)
    await assertWhole(rig, { tools: ['lookup_order'] })
    const [run] = rig.app.runs
    const [action] = rig.emulator.ledger().actions
    expect(run?.signedWith).toEqual([SECRET])
    expect(run?.headers['idempotency-key']).toBe(action?.call_id)
    expect(run?.headers['traceparent']).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$/)
    expect(run?.call).toEqual({
      type: 'tool.call',
      call_id: action?.call_id,
      name: 'lookup_order',
      arguments: { order_id: '42' },
      session_id: session,
      turn_id: action?.turn_id,
      created_at: action?.created_at,
      expires_at: null,
      attempt: 1,
      uncertain: false,
      session: { title: 'An order', metadata: { user: 'u1' } },
    })
  })

  test.for([
    {
      name: '200 with a body',
      said: { status: 200, body: ' {"ü": "\\u0000 \n"} ' },
      model: { output: ' {"ü": "\\u0000 \n"} ' },
    },
    { name: '200 without a body', said: { status: 200 }, model: { output: '(no output)' } },
    { name: '204', said: { status: 204 }, model: { output: '(no output)' } },
    { name: '400', said: { status: 400, body: 'secret detail' }, model: { error: FIXED } },
    { name: '422', said: { status: 422, body: 'secret detail' }, model: { error: FIXED } },
  ])(
    'a tool that answers $name runs once, and the model gets the documented output',
    async ({ said, model }) => {
      await using rig = await open()
      rig.app.run = () => said
      await rig.client.start(CALL)
      await assertWhole(rig, { tools: ['lookup_order'] })
      expect(rig.app.runs).toHaveLength(1)
      expect(answersOf(rig)).toMatchObject([{ output: null, error: null, ...model }])
    },
  )

  test('500, a reset and a redirect are retried; the answer of the run that succeeds is the output', async () => {
    await using rig = await open({
      tools: { lookup_order: { retry: { attempts: 4, base: '5ms', max: '10ms' } } },
    })
    rig.app.run = (_run, nth) =>
      [
        { status: 500, body: 'stack trace' },
        { reset: true } as const,
        { status: 302, headers: { location: '/' } },
      ][nth - 1] ?? { body: 'fine' }
    await rig.client.start(CALL)
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs.map(({ call }) => call.attempt)).toEqual([1, 2, 3, 4])
    // After the 500 it is certain, after the reset it is not.
    expect(rig.app.runs.map(({ call }) => call.uncertain)).toEqual([false, false, true, true])
    expect(answersOf(rig)).toMatchObject([{ output: 'fine' }])
  })

  test('a tool that may not run twice is retried when a reused connection is reset', async () => {
    const served = new WeakSet()
    await using server = await listen(({ socket }, response) => {
      if (served.has(socket)) return void socket.resetAndDestroy()
      served.add(socket)
      response.end('fine')
    })
    await using rig = await open({ tools: { lookup_order: { url: server.url, after_crash: 'fail' } } })
    for (let turn = 0; turn < 3; turn++) {
      const session = await rig.client.start(CALL)
      await rig.event('turn.settled', ({ session_id: id }) => id === session)
    }
    expect(answersOf(rig).map(({ output }) => output)).toEqual(['fine', 'fine', 'fine'])
  })

  // The first failed handshake cost the call its only run.
  test('a tool that may not run twice is tried again while its certificate is not trusted', async () => {
    const calls: Fields[] = []
    const server = createServer(CERTIFICATE, (request, response) => {
      void text(request).then((body) => {
        calls.push(JSON.parse(body) as Fields)
        response.end('fine')
      })
    })
    let refused = 0
    server.on('tlsClientError', () => void refused++)
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const trusted = getCACertificates('default')
    try {
      const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/tools/lookup_order`
      const retry = { attempts: 50, base: '50ms', max: '50ms' }
      await using rig = await open({ tools: { lookup_order: { url, after_crash: 'fail', retry } } })
      await rig.client.start(CALL, 'say {{last}}')
      await until('two refused certificates', () => refused >= 2)
      setDefaultCACertificates([...trusted, CERTIFICATE.cert])
      await rig.event('turn.settled')
      expect(answersOf(rig)).toMatchObject([{ output: 'fine', error: null }])
      expect(calls).toMatchObject([{ uncertain: false }])
    } finally {
      setDefaultCACertificates(trusted)
      server.closeAllConnections()
      server.close()
    }
  })

  test('a tool that cannot be reached uses up its attempts, then the model gets the fixed error', async () => {
    await using rig = await open({
      tools: { lookup_order: { timeout: '300ms', retry: { attempts: 2, base: '5ms', max: '10ms' } } },
    })
    rig.app.run = () => ({ hang: true })
    await rig.client.start(CALL, 'say {{last}}')
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs).toHaveLength(2)
    expect(answersOf(rig)).toMatchObject([{ output: null, error: FIXED }])
  })

  test('202 waits for the admin API, whose answer is posted once', async () => {
    await using rig = await open()
    rig.app.run = () => ({ status: 202 })
    const session = await rig.client.start(CALL, 'say {{last}}')
    const [call] = await rig.client.required(session)
    await until(
      'put-off call',
      async () =>
        (await rig.raw('POST', `/api/calls/${call?.call_id}/answer`, { output: 'later' })).status === 202,
    )
    expect((await rig.raw('POST', `/api/calls/${call?.call_id}/answer`, { output: 'again' })).status).toBe(
      409,
    )
    expect((await rig.raw('POST', '/api/calls/unknown/answer', { output: 'x' })).status).toBe(404)
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(answersOf(rig)).toMatchObject([{ output: 'later' }])
    expect(rig.app.runs).toHaveLength(1)
  })

  test('a call that is deferred past its deadline gets the fixed error in time', async () => {
    await using rig = await open()
    rig.app.run = () => ({ status: 202 })
    // The answer is sent a second before the deadline. A deadline of 5 s leaves half a second, which a busy machine exceeds.
    const session = await rig.client.withTools({ lookup_order: 10 })
    await rig.client.send(session, CALL)
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(answersOf(rig)).toMatchObject([{ output: null, error: FIXED }])
    expect(rig.emulator.ledger().actions[0]?.resolution?.kind).toBe('error')
  })

  test('a deadline of the configuration is declared, and a call that is never answered gets the fixed error by it', async () => {
    await using rig = await open({ tools: { lookup_order: { deadline: '1500ms' } } })
    rig.app.run = () => ({ status: 202 })
    const { data } = await rig.admin('GET', '/api/tools')
    expect(data).toMatchObject([{ name: 'lookup_order', timeout_seconds: 2 }])
    await rig.client.send(await rig.client.create({ agent: { tools: data } }), CALL)
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(answersOf(rig)).toMatchObject([{ output: null, error: FIXED }])
  })

  test('a quick tool answers within a deadline of one second, the shortest', async () => {
    await using rig = await open()
    rig.app.run = () => ({ body: 'in time', delay: 200 })
    const session = await rig.client.withTools({ lookup_order: 1 })
    await rig.client.send(session, CALL, 'say {{last}}')
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(answersOf(rig)).toMatchObject([{ output: 'in time', error: null }])
    expect(rig.emulator.ledger().actions[0]?.resolution?.kind).toBe('output')
  })

  // [fault tool-6]
  test(
    'a run that outlives the deadline is cut, and the fixed error is posted in time',
    { timeout: 60_000 },
    async () => {
      await using rig = await open({
        tools: { lookup_order: { timeout: '40s', retry: { attempts: 5, base: '1ms', max: '2ms' } } },
      })
      rig.app.run = () => ({ hang: true })
      // The answer is posted two seconds before the deadline: a slow machine may take one.
      const session = await rig.client.withTools({ lookup_order: 20 })
      await rig.client.send(session, CALL)
      await assertWhole(rig, { tools: ['lookup_order'] })
      expect(rig.emulator.ledger().actions[0]?.resolution?.kind).toBe('error')
      expect(rig.app.runs).toHaveLength(1)
    },
  )

  // [fault tool-4]
  test('not_delivered is sent as a follow-up message with the same information', async () => {
    await using rig = await open()
    rig.emulator.faults.set({ not_delivered: 1 })
    const session = await rig.client.start(CALL)
    const event = await rig.event('call.not_delivered')
    expect(event.data.call).toMatchObject({ outcome: 'not_delivered' })
    const { messages } = rig.emulator.ledger()
    expect(messages).toHaveLength(2)
    expect(messages[1]?.text).toContain('lookup_order says {"order_id":"42"}')
    expect(rig.app.runs).toHaveLength(1)
    if (details === 'b') await rig.client.cancel(session)
    await assertWhole(rig, { tools: ['lookup_order'] })
  })

  test('not_delivered with `report` sends nothing', async () => {
    await using rig = await open({ tools: { lookup_order: { on_not_delivered: 'report' } } })
    rig.emulator.faults.set({ not_delivered: 1 })
    const session = await rig.client.start(CALL)
    await rig.event('call.not_delivered')
    if (details === 'b') await rig.client.cancel(session)
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.emulator.ledger().messages).toHaveLength(1)
  })

  test('an answer whose reply is lost is not posted in other words, and the call is answered', async () => {
    await using rig = await open()
    rig.emulator.faults.set({ lose_answer_replies: 2 })
    await rig.client.start(CALL, 'say {{last}}')
    await rig.client.start('call lookup_order {"order_id":"43"}')
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs).toHaveLength(2)
    expect(rig.app.delivered().filter(({ type }) => type === 'call.answered')).toHaveLength(2)
  })

  test('stored results of a removed tool are posted, and also results that its app sends later', async () => {
    await using rig = await open({ tools: { lookup_order: {}, later: {} } })
    rig.gateway.intercept = ({ method, url }) =>
      method === 'POST' && url?.includes('/sessions/') === true ? 'reset' : undefined
    rig.app.run = ({ call }) => (call.name === 'later' ? { status: 202 } : { body: 'done' })
    const session = await rig.client.start(`${CALL} & call later {}`, 'say {{last}}')
    const calls = async (query: string) => await rig.list(`/api/calls?${query}`)
    await until('a result', async () => (await calls('state=finished')).length === 1)
    await until('a call put off', async () => (await calls('state=running')).length === 1)
    const [pending] = await calls('state=running')
    await rig.stop()
    rig.config = { ...rig.config, tools: [] }
    rig.gateway.intercept = () => undefined
    await rig.start()
    expect(
      (await rig.raw('POST', `/api/calls/${String(pending?.['call_id'])}/answer`, { output: 'late' })).status,
    ).toBe(202)
    await rig.event('turn.settled', ({ session_id: id }) => id === session)
    const outputs = answersOf(rig).map(({ output }) => output)
    expect(new Set(outputs)).toEqual(new Set(['done', 'late']))
    expect(outputs).toHaveLength(2)
  })

  test('a new tool runs the calls that sessions already wait for', async () => {
    await using rig = await open({ tools: {} })
    const session = await rig.client.start(CALL, 'say {{last}}')
    await rig.event('action.required')
    await rig.stop()
    rig.config = {
      ...rig.config,
      tools: [{ name: 'lookup_order', url: rig.app.toolUrl('lookup_order'), secret: SECRET }],
    }
    await rig.start()
    await rig.event('turn.settled', ({ session_id: id }) => id === session)
    expect(rig.app.runs).toHaveLength(1)
  })

  test('an error page of a proxy before the service cancels no call and discards no result', async () => {
    await using rig = await open()
    const ran = Promise.withResolvers<object>()
    rig.app.run = () => ran.promise
    const session = await rig.client.start(
      'call lookup_order {"big":12345678901234567890,"price":2.50}',
      'say {{last}}',
    )
    await until('a run', () => rig.app.runs.length === 1)
    for (const status of [404, 429, 425, 408]) {
      let refused = 0
      rig.gateway.intercept = ({ url }) =>
        url?.includes('/sessions') === true && refused++ < 4 ? { status, body: '<html>' } : undefined
      if (status === 429) ran.resolve({ body: 'done' })
      if (status === 404) await until('404s', () => refused > 4)
    }
    await rig.event('turn.settled', ({ session_id: id }) => id === session)
    expect(answersOf(rig).map(({ output }) => output)).toEqual(['done'])
    expect(rig.app.seen().map(({ type }) => type)).not.toContain('session.deleted')
    await assertWhole(rig, { tools: ['lookup_order'] })
  })

  test('a follow-up message whose reply is lost is not sent twice', async () => {
    await using rig = await open()
    rig.emulator.faults.set({ not_delivered: 1, lose_message_replies: 1 })
    const session = await rig.client.create()
    rig.emulator.faults.set({ not_delivered: 1 })
    await rig.client.send(session, CALL)
    rig.emulator.faults.set({ not_delivered: 1, lose_message_replies: 1 })
    await rig.event('call.not_delivered')
    expect(rig.emulator.ledger().messages).toHaveLength(2)
  })

  test('a call of a tool that is not ours is reported and not answered', async () => {
    await using rig = await open()
    const session = await rig.client.start('call not_configured {}', 'say {{last}}')
    const [call] = await rig.client.required(session)
    const event = await rig.event('action.required')
    expect(event.data.action).toMatchObject({ type: 'function_call', name: 'not_configured' })
    await rig.client.answer(session, call?.call_id ?? '', 'by another program')
    await rig.event('turn.completed')
    expect(rig.app.runs).toEqual([])
    expect(rig.app.delivered().filter(({ type }) => type.startsWith('call.'))).toEqual([])
  })

  test('approvals and questions are delivered with the fields of the service, and never answered', async () => {
    await using rig = await open()
    const session = await rig.client.start('approve shell rm -rf build', 'ask Which colour?', 'say {{last}}')
    const [approval] = await rig.client.required(session)
    await rig.event('action.required', ({ data }) => data.action?.type === 'approval')
    rig.emulator.resolveAction(approval?.call_id ?? '', { approved: false })
    const asked = await rig.event('action.required', ({ data }) => data.action?.type === 'question')
    expect(asked.data.action?.[details === 'a' ? 'question' : 'prompt']).toBe('Which colour?')
    rig.emulator.resolveAction(asked.data.action?.call_id ?? '', { answer: 'blue' })
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(answersOf(rig)).toEqual([])
  })

  // [fault state-5]
  test('a tool deleted with its session is stopped, and its call is cancelled', async () => {
    await using rig = await open({ tools: { lookup_order: { timeout: '10s' } } })
    rig.app.run = () => ({ hang: true })
    const session = await rig.client.start(CALL)
    await until('run', () => rig.app.runs.length === 1)
    // A tool may run before the reading of its session is stored; what was never stored makes no session.deleted.
    await rig.event('action.required')
    await rig.client.remove(session)
    const failed = await rig.event('call.failed')
    expect(failed.data.call).toMatchObject({ outcome: 'cancelled' })
    await rig.event('session.deleted')
    await rig.event('action.resolved')
    await assertWhole(rig, { tools: [] })
  })
})

/**
 * A session whose first turn has ended calls a function 300 ms into its next turn: its frame is read ahead, and the call
 * begins before the session was read.
 */
describe.for(PROFILES)('a call of a session that is known (%s)', (details) => {
  const open = (tool: Fields = {}) =>
    Rig.open({ details, channels: ['stream'], tools: { lookup_order: { timeout: '60s', ...tool } } })
  const call = async (rig: Rig): Promise<string> => {
    const session = await rig.client.start('say Hello')
    await rig.event('turn.settled', ({ session_id }) => session_id === session)
    await rig.client.send(session, 'wait 300ms', CALL, 'say {{last}}')
    return session
  }

  test('is reported as answered at once, and not at the next look at the session', async () => {
    await using rig = await open()
    const session = await call(rig)
    await rig.event('call.answered', ({ session_id }) => session_id === session)
    const [run] = rig.app.runs
    const [answered] = rig.app.callbacks.filter(({ events }) => events[0]?.type === 'call.answered')
    expect((answered?.at ?? Infinity) - (run?.endedAt ?? 0)).toBeLessThan(1500)
    await rig.event('action.required', ({ session_id }) => session_id === session)
  })

  test('is stopped when its turn is cancelled just after it began', async () => {
    await using rig = await open()
    rig.app.run = () => ({ hang: true })
    const session = await call(rig)
    await until('run', () => rig.app.runs.length === 1)
    await rig.client.cancel(session)
    await rig.event('call.failed')
    await until('end of the run', () => rig.app.runs[0]?.endedAt)
    expect(rig.app.runs).toHaveLength(1)
  })

  test('is not run when its turn is cancelled while it waits for a slot', async () => {
    await using rig = await open({ concurrency: 1 })
    const free = Promise.withResolvers<void>()
    rig.app.run = async () => {
      await free.promise
      return {}
    }
    const busy = await rig.client.start(CALL)
    await until('run', () => rig.app.runs.length === 1)
    const session = await call(rig)
    await rig.event('action.required', ({ session_id }) => session_id === session)
    await rig.client.cancel(session)
    await rig.event('action.resolved', ({ session_id }) => session_id === session)
    free.resolve()
    await rig.event('call.answered', ({ session_id }) => session_id === busy)
    await rig.event('call.failed', ({ session_id }) => session_id === session)
    expect(rig.app.runs.map(({ call: { session_id } }) => session_id)).toEqual([busy])
  })
})

describe.for(PROFILES)('outputs and refusals (%s)', (details) => {
  // [fault tool-9]
  test('an output over 1 MiB is not posted: the model gets the fixed error, and other calls are not held up', async () => {
    await using rig = await Rig.open({ details, tools: { lookup_order: {}, second: {} } })
    rig.app.run = ({ call }) => ({ body: call.name === 'second' ? 'small' : 'x'.repeat(1024 * 1024 + 1) })
    await rig.client.start(`${CALL} & call second {}`)
    await assertWhole(rig, { tools: ['lookup_order', 'second'] })
    const { answers } = rig.emulator.ledger()
    expect(new Set(answers.map(({ output, error }) => output ?? error))).toEqual(new Set([FIXED, 'small']))
  })

  test('an answer that the service refuses is followed once by the fixed error, and is call.failed', async () => {
    await using rig = await Rig.open({ details, tools: { lookup_order: {} } })
    const error = { code: 'invalid_request', message: 'no such output', request_id: 'req_1' }
    let refusals = 0
    rig.gateway.intercept = ({ method, url }) =>
      method === 'POST' && rig.client.answers(url) && refusals++ === 0
        ? { status: 400, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ error }) }
        : undefined
    await rig.client.start(CALL, 'say {{last}}')
    const failed = await rig.event('call.failed')
    expect(failed.data.call).toMatchObject({ outcome: 'refused' })
    await rig.event('turn.settled')
    expect(rig.emulator.ledger().answers).toMatchObject([{ output: null, error: FIXED }])
    expect(rig.app.runs).toHaveLength(1)
  })

  test('an output that as JSON is over the service’s body limit leaves no session waiting', async () => {
    await using rig = await Rig.open({ details, tools: { lookup_order: {} } })
    // Each of these characters takes six bytes. The service may cut the connection of a body that is too large instead
    // of letting the client read its 400 (rules ERR-49, ERR-50); the gateway makes it so.
    rig.app.run = () => ({ body: '\u0001'.repeat(300_000) })
    await rig.client.start(CALL, 'say {{last}}')
    await rig.event('turn.settled')
    expect(rig.emulator.ledger().answers).toMatchObject([{ output: null, error: FIXED }])
  })

  // [fault tool-8]
  test('module tools: output as JSON, explained arguments, thrown text nowhere (I13)', async () => {
    const define = (name: string, explain: boolean) =>
      tool({
        name,
        description: name,
        input: z.object({ n: z.number().max(10) }),
        explain,
        retry: { attempts: 1 },
        run: ({ n }) => {
          if (n === 0) throw new Error('password is hunter2')
          return n === 1 ? undefined : { doubled: n * 2 }
        },
      })
    await using rig = await Rig.open({
      details,
      prepare: (sidecar) => sidecar.tool(define('plain', false)).tool(define('explained', true)),
    })
    const session = await rig.client.create()
    const outcome = async (line: string) => {
      const before = rig.emulator.ledger().answers.length
      await rig.client.send(session, line)
      const answer = await until('answer', () => rig.emulator.ledger().answers[before])
      await rig.client.reached(session, 'idle')
      return answer.output ?? { error: answer.error }
    }
    expect(await outcome('call plain {"n":2}')).toBe('{"doubled":4}')
    expect(await outcome('call plain {"n":1}')).toBe('(no output)')
    expect(await outcome('call plain {"n":0}')).toEqual({ error: FIXED })
    expect(await outcome('call plain {"n":"two"}')).toEqual({ error: FIXED })
    expect(await outcome('call explained {"n":11}')).toMatch(/^The arguments do not fit:\nn: /)
    expect(await rig.admin('GET', '/api/tools')).toMatchObject({
      data: [{ name: 'plain', type: 'function' }, { name: 'explained' }],
    })
    const shown = [rig.app.delivered(), await rig.list('/api/calls'), rig.program?.lines]
    expect(JSON.stringify(shown)).not.toContain('hunter2')
  })
})
