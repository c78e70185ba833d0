import { describe, expect, test } from 'vitest'
import { OPEN_PARTS, type OpenPart } from '../../src/emulator/index.ts'
import type { Fields } from '../support/app.ts'
import { PROFILES } from './engines.ts'
import { assertWhole } from '../support/oracle.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { FULL } from '../support/full.ts'

const CALL = 'call lookup_order {"order_id":"42"}'

describe.for(PROFILES)('a service that describes no idempotency header (%s)', (details) => {
  const open = (more: Parameters<typeof Rig.open>[0] = {}) =>
    Rig.open({
      details,
      tools: { lookup_order: {} },
      emulator: { leaveOut: ['idempotency-header'] },
      ...more,
    })

  // Four lost replies made it take the message five times.
  test('accepts a follow-up message once, also if several replies are lost', async () => {
    await using rig = await open()
    const { promise: armed, resolve: arm } = Promise.withResolvers<object>()
    rig.app.run = () => armed
    const session = await rig.client.start(CALL)
    rig.emulator.faults.set({ not_delivered: 1, lose_message_replies: 4 })
    arm({ body: 'tea' })
    await until('follow-up message', () => rig.emulator.ledger().messages.length === 2)
    // Its turn hangs without the answer, and the message waits behind it.
    if (details === 'b') await rig.client.cancel(session)
    const event = await rig.event('call.not_delivered')
    expect(event.data.call).toMatchObject({ outcome: 'not_delivered', error: null })
    const fresh = rig.emulator.ledger().messages.filter(({ text }) => text.includes('did not reach you'))
    expect(fresh).toMatchObject([{ idempotency_key: null }])
    await assertWhole(rig, { tools: ['lookup_order'] })
  })

  test('accepts an answer once, also if several replies are lost', async () => {
    await using rig = await open()
    rig.emulator.faults.set({ lose_answer_replies: 4 })
    await rig.client.start(CALL, 'say {{last}}')
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.emulator.ledger().answers).toHaveLength(1)
  })

  test('keeps one webhook subscription, however many replies to its creation are lost', async () => {
    await using rig = await open({ channels: ['webhook'], start: false })
    rig.emulator.faults.set({ fail_operations: lost('createWebhook', 1) })
    await rig.start()
    await until('lost creation', () => creations(rig) === 1)
    await rig.stop()
    await rig.start()
    await until('subscription', async () => (await rig.channel('webhook'))['state'] === 'live')
    await rig.client.start('say Hello')
    await rig.event('turn.settled')
    expect((await rig.client.call('GET', '/v1/webhooks'))['data']).toHaveLength(1)
  })
})

describe.for(OPEN_PARTS)('a service that does not describe: %s', (part) => {
  test('is followed, and status and log say what is missing', async () => {
    await using rig = await Rig.open({ tools: { lookup_order: {} }, emulator: { leaveOut: [part] } })
    const { discovery } = await rig.admin('GET', '/api/status')
    const absent = (discovery as Fields[]).filter(({ found }) => found === null)
    expect(absent).toMatchObject([{ name: NAMES[part] }])
    await rig.client.start('say Hello', 'write outputs/report.txt done')
    await rig.event('turn.settled')
    if (part === 'answer') return
    rig.emulator.faults.set({ lose_answer_replies: 1 })
    const session = await rig.client.start(CALL)
    await rig.event('turn.settled', ({ session_id: id }) => id === session)
    expect(rig.emulator.ledger().answers).toHaveLength(1)
  })
})

const NAMES: Readonly<Record<OpenPart, string>> = {
  message: 'message route',
  answer: 'answer route',
  turn: 'single turn',
  'session-stream': 'stream of one session',
  artifacts: 'list of artifacts',
  'idempotency-header': 'idempotency header',
  'rate-headers': 'rate headers',
}

const lost = (operation: string, times: number) => [{ operation, lose_reply: true, times }]

const creations = (rig: Rig): number =>
  rig.gateway.passed.filter(({ method, path }) => method === 'POST' && path === '/v1/webhooks').length

// It was posted again every 3 s for ever.
test.runIf(FULL)('an accepted answer is not posted again while its call stays listed', async () => {
  await using rig = await Rig.open({ tools: { lookup_order: {} }, channels: ['stream'] })
  rig.emulator.faults.set({ keep_answered: 2 })
  const session = await rig.client.start(CALL)
  await until('answer', () => rig.emulator.ledger().answers.length === 1)
  const answered = rig.gateway.passed.length
  const looks = () =>
    rig.gateway.passed
      .slice(answered)
      .filter(({ method, path }) => method === 'GET' && path === `/v1/sessions/${session}`)
  // The reading after the answer, and two looks, 3 and 9 s later.
  await until('two looks', () => looks().length >= 3, 20_000)
  expect(rig.emulator.ledger().answers).toHaveLength(1)
  expect((await rig.list('/api/calls')).map(({ state, outcome }) => [state, outcome])).toEqual([
    ['finished', 'delivered'],
  ])
  rig.emulator.faults.set({})
  await rig.client.remove(session)
  const event = await rig.event('call.answered')
  expect(event.data.call).toMatchObject({ outcome: 'delivered' })
})
