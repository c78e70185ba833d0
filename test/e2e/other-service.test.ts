import { describe, expect, test } from 'vitest'
import { App, SECRET } from '../support/app.ts'
import { order } from '../checker/reports.ts'
import { OTHER_TOKEN, OtherService } from '../support/other-service.ts'
import { freePort } from '../support/listen.ts'
import { asProcess } from '../support/program.ts'
import { storeFor } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { request } from 'undici'

/** The binary as it is, between a service of another make and an application. */
async function open(channels: { stream: boolean; polling: boolean; webhooks: boolean }) {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(path.join(tmpdir(), 'sidecar-other-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const service = stack.use(await OtherService.start())
  const app = stack.use(await App.start())
  const port = await freePort()
  const config = {
    service: { base_url: service.url, token: OTHER_TOKEN },
    store: await storeFor(stack, folder),
    stream: { enabled: channels.stream },
    polling: { enabled: channels.polling, interval: '100ms', sweep: '1s' },
    webhooks: channels.webhooks
      ? { enabled: true, listen: `127.0.0.1:${port}`, public_url: `http://127.0.0.1:${port}/webhooks` }
      : { enabled: false },
    handlers: [{ name: 'app', url: app.handlerUrl('app'), secret: SECRET }],
    tools: [{ name: 'lookup_order', url: app.toolUrl('lookup_order'), secret: SECRET }],
    admin: { listen: '127.0.0.1:0' },
  }
  const held = stack.move()
  const start = async () => {
    const program = await asProcess(config, folder)
    held.defer(() => program.stop())
    return program
  }
  const event = (type: string, turnId?: string) =>
    until(type, () =>
      app
        .delivered()
        .find((event) => event.type === type && (turnId === undefined || event.data.turn?.id === turnId)),
    )
  return { service, app, event, start, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

describe.for([
  { name: 'stream', channels: { stream: true, polling: false, webhooks: false } },
  { name: 'polling', channels: { stream: false, polling: true, webhooks: false } },
  { name: 'webhooks', channels: { stream: false, polling: false, webhooks: true } },
  { name: 'all three', channels: { stream: true, polling: true, webhooks: true } },
])('a service of another make, by $name', ({ channels }) => {
  test('turns are delivered, calls are answered, and no request is sent that its description does not have', async () => {
    await using rig = await open(channels)
    const { service, app } = rig
    const program = await rig.start()
    await until('first look', async () => (await request(`${program.admin}/startupz`)).statusCode === 200)
    if (channels.stream)
      await until('open stream', () => program.lines.some(({ message }) => message === 'stream: connected'))
    const session = service.session()
    const turn = service.begin(session)
    service.say(turn, 'Hello')
    const callId = service.ask(turn, 'lookup_order', { order_id: '42' })
    await until('answer', () => service.answers.length === 1)
    expect(service.answers).toEqual([
      { sessionId: session, once: callId, call_id: callId, output: 'lookup_order says {"order_id":"42"}' },
    ])
    await rig.event('call.answered')
    service.end(turn, 'completed')
    await rig.event('turn.settled', turn)
    const stopped = service.begin(session)
    await rig.event('turn.started', stopped)
    service.end(stopped, 'abandoned', 'partial')
    const ended = await rig.event('turn.ended', stopped)
    expect(ended.data.turn?.status).toBe('abandoned')
    await rig.event('turn.settled', stopped)
    await rig.event('session.idle')

    expect(service.refused).toEqual([])
    expect(order(app.delivered())).toEqual([])
    expect(app.delivered().find(({ type }) => type === 'call.answered')?.data.call?.outcome).toBe(
      'handed_over',
    )
    expect(app.delivered().every(({ session_id }) => session_id === session)).toBe(true)
    expect(new Set(app.callbacks.map(({ id }) => id)).size).toBe(app.callbacks.length)
  })
})

test('its replay stops, drops and frames without a session are accepted', async () => {
  await using rig = await open({ stream: true, polling: true, webhooks: false })
  const { service, app } = rig
  const program = await rig.start()
  await until('open stream', () => program.lines.some(({ message }) => message === 'stream: connected'))
  const session = service.session()
  const turn = service.begin(session)
  await rig.event('turn.started', turn)
  // More is missing after the drop than one replay holds.
  service.dropStreams()
  for (let count = 0; count < 23; count++) service.say(turn, `message ${count}`)
  service.announce('to all')
  service.end(turn, 'failed')
  const failed = await rig.event('turn.failed', turn)
  expect(failed.data.turn?.status).toBe('failed')
  await until(
    'the whole transcript',
    () => new Set(app.delivered().flatMap(({ data }) => data.seq ?? [])).size === service.lastSeq,
  )
  const announced = await rig.event('organization.announced')
  expect(announced.session_id).toBeNull()
  expect(order(app.delivered())).toEqual([])
})

test('an answer that it did not deliver is sent in its own words as a follow-up message', async () => {
  await using rig = await open({ stream: true, polling: false, webhooks: false })
  const { service } = rig
  const program = await rig.start()
  await until('open stream', () => program.lines.some(({ message }) => message === 'stream: connected'))
  service.outcome = 'not_delivered'
  const turn = service.begin(service.session())
  service.ask(turn, 'lookup_order', { order_id: '42' })
  await rig.event('call.not_delivered')
  expect(service.messages).toMatchObject([
    { kind: 'text', body: expect.stringContaining('lookup_order says') },
  ])
  expect(service.refused).toEqual([])
})
