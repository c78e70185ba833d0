import { describe, expect, onTestFinished, test } from 'vitest'
import type { Log } from '../../src/std/ports.ts'
import type { Service } from '../../src/core/ports.ts'
import type { Session, Turn } from '../../src/core/resource.ts'
import { startEmulator } from '../../src/emulator/index.ts'
import type { Emulator, EmulatorOptions } from '../../src/emulator/index.ts'
import { createService } from '../../src/client/service.ts'
import type { ServiceClient, ServiceOptions } from '../../src/client/service.ts'
import { systemClock } from '../../src/system/clock.ts'
import { createHttp } from '../../src/system/http.ts'
import { systemRandom } from '../../src/system/random.ts'
import { faultOf } from '../support/service/client.ts'
import { until } from '../support/service/server.ts'

const log: Log = {
  debug: () => undefined,
  info: () => undefined,
  // Nothing that the emulator says may be new to the client.
  warn: (details, message) => expect.unreachable(`${message} ${JSON.stringify(details)}`),
  error: (details, message) => expect.unreachable(`${message} ${JSON.stringify(details)}`),
  child: () => log,
}

interface Both {
  emulator: Emulator
  service: ServiceClient
  /** A session with one function tool. */
  session: string
}

async function start(options: EmulatorOptions, more: Partial<ServiceOptions> = {}): Promise<Both> {
  const emulator = await startEmulator(options)
  const http = createHttp()
  const made = await http.exchange({
    method: 'POST',
    url: `${emulator.baseUrl}/v1/sessions`,
    headers: { authorization: `Bearer ${emulator.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      title: 'Refunds',
      metadata: { order: '42' },
      agent: {
        tools: [{ type: 'function', name: 'lookup_order', description: 'x', parameters: { type: 'object' } }],
      },
    }),
    timeout: 5000,
    maxBody: 1e6,
  })
  const service = createService({
    baseUrl: emulator.baseUrl,
    token: emulator.token,
    http,
    clock: systemClock(),
    random: systemRandom(),
    log,
    ...more,
  })
  onTestFinished(async () => {
    service.stop()
    await http.close()
    await emulator.close()
  })
  await service.discover()
  return { emulator, service, session: (JSON.parse(made.body) as { id: string }).id }
}

/** Reads until what was read will do. */
async function readUntil<T>(read: () => Promise<T>, enough: (value: T) => boolean): Promise<T> {
  const deadline = performance.now() + 10_000
  for (;;) {
    const value = await read()
    if (enough(value)) return value
    if (performance.now() > deadline) throw new Error(`never came true of ${JSON.stringify(value)}`)
  }
}

const waiting = (service: Service, id: string): Promise<Session> =>
  readUntil(
    () => service.readSession(id),
    ({ actions }) => actions.length > 0,
  )

const lastTurn = (service: Service, id: string, enough: (turn: Turn) => boolean): Promise<Turn | undefined> =>
  readUntil(
    async () => (await service.listTurns(id, { order: 'desc', limit: 1 })).data[0],
    (turn) => turn !== undefined && enough(turn),
  )

describe.each(['a', 'b'] as const)('the emulator with open details %s', (openDetails) => {
  test('shows every operation in its document', async () => {
    const { service } = await start({ openDetails })
    const { routes, idempotencyHeader, rateHeaders, documented } = service.discovery()
    expect(documented).toBe(true)
    expect(Object.entries(routes).filter(([, route]) => !route.found)).toEqual([])
    expect(routes.answer).toMatchObject({ how: 'document', scopes: ['tools:respond'] })
    expect(idempotencyHeader).not.toBeNull()
    expect(rateHeaders).toMatchObject({ remaining: expect.any(String), bucket: expect.any(String) })
  })

  test('does the whole job: message, call, answer, turn, items, artifacts', async () => {
    const { service, session } = await start({ openDetails })
    expect(await service.health()).toMatchObject({ usable: true, missingScopes: [] })
    await service.sendMessage(
      session,
      'call lookup_order {"order_id":"42"}\nwrite outputs/report.txt hello',
      { key: 'm1' },
    )

    const asked = await waiting(service, session)
    expect(asked).toMatchObject({ status: 'requires_action', title: 'Refunds', metadata: { order: '42' } })
    const [action] = asked.actions
    expect(action).toMatchObject({
      type: 'function_call',
      name: 'lookup_order',
      arguments: { order_id: '42' },
    })
    const listed = await service.listSessions({ status: 'requires_action', limit: 10, order: 'asc' })
    expect(listed.data.map(({ id }) => id)).toEqual([session])
    expect((await service.listSessions({ status: 'idle' })).data).toEqual([])

    const call = action?.callId ?? ''
    const outcome = await service.answer(session, call, { output: '{"state":"shipped"}' }, { key: call })
    expect(outcome).not.toBe('not_delivered')
    expect(await service.answer(session, call, { output: '{"state":"shipped"}' }, { key: call })).toBe(
      outcome,
    )

    const turn = await lastTurn(service, session, ({ artifacts }) => artifacts === 'ready')
    expect(turn).toMatchObject({ sessionId: session, status: 'completed' })
    expect(await service.readTurn(session, turn?.id ?? '')).toEqual(turn)
    expect(await service.listArtifacts(session)).toHaveLength(1)
    const items = await service.listItems(session, { order: 'asc', limit: 100 })
    expect(items.data.map(({ event }) => event)).toContain('agent.tool_call')
    expect(items.data.every(({ sessionId }) => sessionId === session)).toBe(true)
    expect((await service.readSession(session)).actions).toEqual([])
  })

  test('pages to the end, and an unknown cursor is an empty page', async () => {
    const { service, session } = await start({ openDetails })
    await service.sendMessage(session, 'say one\nsay two\nsay three', { key: 'm1' })
    await lastTurn(service, session, ({ status }) => status === 'completed')
    const whole = await service.listItems(session, { order: 'asc', limit: 100 })
    const paged: string[] = []
    let after: string | null = null
    do {
      const page = await service.listItems(session, {
        order: 'asc',
        limit: 2,
        ...(after === null ? {} : { after }),
      })
      paged.push(...page.data.map(({ id }) => id))
      after = page.hasMore ? page.lastId : null
    } while (after !== null)
    expect(paged).toEqual(whole.data.map(({ id }) => id))
    expect(await service.listItems(session, { after: 'nowhere' })).toEqual({
      data: [],
      hasMore: false,
      lastId: null,
    })
  })

  test('takes one answer for one key, also when its reply is lost', async () => {
    const retried: string[] = []
    const { emulator, service, session } = await start(
      { openDetails },
      { onRetry: (code) => retried.push(code), timeout: 1000 },
    )
    await service.sendMessage(session, 'call lookup_order {}', { key: 'm1' })
    const call = (await waiting(service, session)).actions[0]?.callId ?? ''
    emulator.faults.set({ lose_answer_replies: 1 })
    expect(await service.answer(session, call, { error: 'It is not available.' }, { key: call })).not.toBe(
      'not_delivered',
    )
    expect(retried).toEqual(['no_reply'])
    const answers = emulator.ledger().answers.filter((answer) => JSON.stringify(answer).includes(call))
    expect(answers).toHaveLength(1)
  })

  test('sends one message for one key, also when its reply is lost', async () => {
    const { emulator, service, session } = await start({ openDetails }, { timeout: 1000 })
    emulator.faults.set({ lose_message_replies: 1 })
    await service.sendMessage(session, 'say hello', { key: 'm1' })
    await lastTurn(service, session, ({ status }) => status === 'completed')
    expect((await service.listTurns(session, {})).data).toHaveLength(1)
  })

  test('says when an answer was not delivered', async () => {
    const { emulator, service, session } = await start({ openDetails })
    await service.sendMessage(session, 'call lookup_order {}', { key: 'm1' })
    const call = (await waiting(service, session)).actions[0]?.callId ?? ''
    emulator.faults.set({ not_delivered: 1 })
    expect(await service.answer(session, call, { output: 'x' }, { key: call })).toBe('not_delivered')
  })

  test('refuses to answer what is for a person, and says why', async () => {
    const { service, session } = await start({ openDetails })
    await service.sendMessage(session, 'ask Which colour?', { key: 'm1' })
    const [action] = (await waiting(service, session)).actions
    expect(action?.type).toBe('question')
    const error = await faultOf(
      service.answer(session, action?.callId ?? '', { output: 'blue' }, { key: 'k' }),
    )
    expect(error).toMatchObject({ name: 'ServiceError', requestId: expect.any(String), transient: false })
  })

  test('keeps webhook subscriptions', async () => {
    const { service } = await start({ openDetails })
    const url = 'https://app.example.com/webhooks'
    const made = await service.createWebhook(url, 'k1')
    expect(made).toMatchObject({ url, events: [], active: true, secret: expect.any(String) })
    expect(await service.listWebhooks()).toEqual([{ ...made, secret: null }])
    expect(await faultOf(service.createWebhook(url, 'k2'))).toMatchObject({ code: 'conflict', status: 409 })
    await service.deleteWebhook(made.id)
    expect(await service.listWebhooks()).toEqual([])
  })

  test('streams from the beginning, and stops at the signal', async () => {
    const { emulator, service, session } = await start({ openDetails })
    await service.sendMessage(session, 'say hello', { key: 'm1' })
    await lastTurn(service, session, ({ status }) => status === 'completed')
    const abort = new AbortController()
    let text = ''
    for await (const chunk of await service.openStream('0', abort.signal)) {
      text += Buffer.from(chunk).toString()
      if (text.includes('event: turn.ended')) break
    }
    expect(text).toMatch(/^retry: \d+/m)
    expect(text).toContain('event: agent.message')
    await until(() => emulator.openStreams() === 0)
  })

  test('refuses a stream over the ceiling with the time to come back', async () => {
    const { service } = await start({ openDetails, limits: { streamsPerToken: 1 } })
    const abort = new AbortController()
    await service.openStream(null, abort.signal)
    const error = await faultOf(service.openStream(null, abort.signal))
    expect(error).toMatchObject({ code: 'rate_limit_exceeded', retryAfter: expect.any(Number) })
    expect((await service.health()).usable).toBe(true)
    abort.abort()
  })

  test('a revoked token stops all requests until the token changes', async () => {
    const { emulator, service } = await start({ openDetails })
    const minted = emulator.mintToken(['sessions:read'])
    service.setToken(minted.token)
    expect(await service.health()).toMatchObject({ scopes: ['sessions:read'] })
    const url = 'https://app.example.com/webhooks'
    expect(await faultOf(service.createWebhook(url, 'k'))).toMatchObject({
      code: 'permission_denied',
      status: 403,
    })
    emulator.revokeToken(minted.id)
    expect(await faultOf(service.health())).toMatchObject({ status: 401 })
    expect(service.authorized()).toBe(false)
    service.setToken(emulator.token)
    expect((await service.health()).usable).toBe(true)
  })

  test('survives the failures of the service', async () => {
    const retried: string[] = []
    const { emulator, service } = await start({ openDetails }, { onRetry: (code) => retried.push(code) })
    emulator.faults.set({ bad_gateway: 2 })
    expect((await service.health()).usable).toBe(true)
    emulator.faults.set({ server_errors: 1 })
    expect((await service.health()).usable).toBe(true)
    emulator.faults.set({ directory_unavailable: 1, retry_after: 0 })
    expect((await service.health()).usable).toBe(true)
    expect(retried).toEqual(['http_502', 'http_502', 'internal_error', 'directory_unavailable'])
  })

  test('a used-up budget is waited for and fails no call', async () => {
    const left: number[] = []
    const { service } = await start(
      { openDetails, limits: { readsBurst: 10, readsPerSecond: 20 } },
      { onBudget: (_bucket, remaining) => left.push(remaining) },
    )
    const read = await Promise.all(Array.from({ length: 20 }, () => service.listSessions({})))
    expect(read.every(({ data }) => data.length === 1)).toBe(true)
    expect(Math.min(...left)).toBe(0)
    expect(Object.keys(service.budget())).toHaveLength(1)
  })

  test('its clock is known', async () => {
    const { emulator, service } = await start({ openDetails })
    expect(service.clockOffset()).toBe(0)
    emulator.faults.set({ clock_skew_ms: 600_000 })
    await service.health()
    expect(Math.abs(service.clockOffset() - 600_000)).toBeLessThan(1500)
  })
})
