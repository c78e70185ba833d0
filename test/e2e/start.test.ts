import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Log } from '../../src/std/ports.ts'
import { createSidecar } from '../../src/index.ts'
import { SECRET } from '../support/app.ts'
import { PROFILES } from './engines.ts'
import { assertWhole } from '../support/oracle.ts'
import { freePort, listen } from '../support/listen.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { FULL } from '../support/full.ts'

// oxlint-disable-next-line typescript/no-misused-promises -- TypeScript lets it pass, so programs have it
const refusing: () => void = () => Promise.reject(new Error('an unhandled rejection'))

const SILENT: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => SILENT,
}

/** A startup probe gives up on a program that never says 200. */
async function startup(rig: Rig): Promise<number> {
  const answer = async () => (await rig.raw('GET', '/startupz')).status
  await until('200 of /startupz', async () => (await answer()) === 200, 3000).catch(() => undefined)
  return await answer()
}

describe.for(PROFILES)('a start (%s)', (details) => {
  test('/startupz answers 200 on a restart, whose first read was made by an earlier run', async () => {
    await using rig = await Rig.open({ details })
    await rig.stop()
    await rig.start()
    expect(await startup(rig)).toBe(200)
  })

  test('a restart lists the sessions once, when the stream is connected', async () => {
    await using rig = await Rig.open({ details, config: { polling: { interval: '1h', sweep: '1h' } } })
    await rig.client.start('say hello')
    await assertWhole(rig)
    await rig.stop()
    const before = rig.gateway.passed.length
    await rig.start()
    await rig.client.start('say hello again')
    await assertWhole(rig)
    const lists = rig.gateway.passed.slice(before).filter(({ path }) => path.startsWith('/v1/sessions?'))
    expect(lists.map(({ path }) => path)).toHaveLength(1)
  })

  test('/startupz answers 200 with start_from beginning', async () => {
    await using rig = await Rig.open({ details, config: { stream: { start_from: 'beginning' } } })
    expect(await startup(rig)).toBe(200)
  })

  test('a stop cuts a start short, other calls of stop wait for it, and nothing is left', async () => {
    await using rig = await Rig.open({ details, start: false })
    const asked = Promise.withResolvers<void>()
    rig.gateway.intercept = () => {
      asked.resolve()
      return new Promise(() => undefined)
    }
    const sidecar = await createSidecar({ config: rig.config, log: SILENT })
    const started = sidecar.start()
    await asked.promise
    const begun = performance.now()
    await Promise.all([sidecar.stop(), sidecar.stop()])
    expect(performance.now() - begun).toBeLessThan(5000)
    await started
    expect(sidecar.address).toEqual({ admin: null, webhooks: null })
    // The store is free again.
    rig.gateway.intercept = () => undefined
    await rig.start()
  })

  test('a stop lets an answer that is under way end', async () => {
    await using rig = await Rig.open({ details, tools: { lookup_order: {} } })
    const out = Promise.withResolvers<void>()
    const go = Promise.withResolvers<undefined>()
    rig.gateway.intercept = ({ method }) => {
      if (method !== 'POST') return undefined
      out.resolve()
      return go.promise
    }
    rig.app.run = () => ({ body: 'shipped' })
    await rig.client.start('call lookup_order {}')
    await out.promise
    const stopped = rig.stop()
    go.resolve(undefined)
    await stopped
    rig.gateway.intercept = () => undefined
    await rig.start()
    const { data } = await rig.event('call.answered')
    expect(data.call?.outcome).not.toBe('unknown')
    expect(rig.emulator.ledger().answers).toHaveLength(1)
  })

  test('a start with a rejected token is retried with the new token of the file', async () => {
    await using rig = await Rig.open({ details, start: false, channels: ['poll'] })
    const file = path.join(rig.folder, 'token')
    await writeFile(file, 'svc_pat_wrong')
    const service = { base_url: rig.gateway.url, token_file: file }
    const sidecar = await createSidecar({ config: { ...rig.config, service }, log: SILENT })
    await expect(sidecar.start()).rejects.toMatchObject({ exitCode: 3 })
    await writeFile(file, rig.token.token)
    await sidecar.start()
    expect(() => sidecar.on('turn.settled', () => undefined)).toThrow('on: the sidecar was started already')
    await sidecar.stop()
  })

  test('an observer of a program that throws stops nothing, and is logged once', async () => {
    await using rig = await Rig.open({
      details,
      prepare: (sidecar) =>
        void sidecar.observe({
          fact() {
            throw new TypeError('no turn')
          },
          // A program's function may well be async, which TypeScript lets pass.
          callback: refusing,
        }),
    })
    for (const text of ['say one', 'say two']) await rig.client.start(text)
    await until('both', () => rig.app.delivered().filter(({ type }) => type === 'turn.settled').length === 2)
    await assertWhole(rig)
    const lines = rig.program?.lines.filter(({ message }) => message.startsWith('observe:'))
    expect(lines?.map(({ details: said }) => said)).toEqual([
      { method: 'fact', error: 'it threw TypeError' },
      { method: 'callback', error: 'it threw Error' },
    ])
  })

  test('a start that failed is tried again with the same sidecar', async () => {
    await using rig = await Rig.open({ details, start: false })
    const port = await freePort()
    const other = await listen((_request, response) => response.end(), port)
    const config = { ...rig.config, admin: { listen: `127.0.0.1:${port}` } }
    const sidecar = await createSidecar({ config, log: SILENT })
    await expect(sidecar.start()).rejects.toThrow(/in use/)
    await other[Symbol.asyncDispose]()
    await sidecar.start()
    expect(sidecar.address.admin?.port).toBe(port)
    await sidecar.stop()
  })

  test('/startupz answers 200 when the service is known to be unreachable', async () => {
    await using rig = await Rig.open({ details, start: false })
    rig.gateway.intercept = () => 'reset'
    await rig.start()
    expect(await startup(rig)).toBe(200)
    const { routes } = await rig.admin('GET', '/api/status')
    expect(routes).toContainEqual({
      operation: 'readTurn',
      method: null,
      path: null,
      how: 'missing',
      reason: expect.stringMatching(
        /^the service's document is not known \(.+\), and the sidecar tries again; if the service has none, set service\.routes\.turn_path$/,
      ),
    })
    await until('cause', async () => (await rig.channel('poll'))['last_error'] !== null)
    expect((await rig.channel('poll'))['state']).toBe('waiting')
    rig.gateway.intercept = () => undefined
    await until('live', async () => (await rig.channel('poll'))['state'] === 'live', 30_000)
  })

  test('logs handlers that are no longer configured, and delivers once one has the name again', async () => {
    await using rig = await Rig.open({
      details,
      channels: ['poll'],
      handlers: (app) => ['old', 'kept'].map((name) => ({ name, url: app.handlerUrl(name), secret: SECRET })),
    })
    rig.app.handle = ({ name }) => (name === 'old' ? { status: 503 } : {})
    const session = await rig.client.start('say Hello')
    await rig.event('turn.settled', () => true, 'kept')
    const { handlers = [] } = rig.config
    await rig.stop()
    rig.config = { ...rig.config, handlers: handlers.filter(({ name }) => name !== 'old') }
    await rig.start()
    const pending = await rig.list('/api/deliveries?status=pending&handler=old')
    expect(pending).not.toHaveLength(0)
    await expect.poll(() => warnings(rig)).toEqual([{ handler: 'old', pending: pending.length }])

    await rig.stop()
    rig.app.handle = () => ({})
    rig.config = { ...rig.config, handlers }
    await rig.start()
    await rig.event('turn.settled', ({ session_id }) => session_id === session, 'old')
    expect(warnings(rig)).toEqual([])
  })

  test('keeps the dead letters of a removed handler until a handler has its name again', async () => {
    await using rig = await Rig.open({
      details,
      channels: ['poll'],
      handlers: (app) => ['old', 'kept'].map((name) => ({ name, url: app.handlerUrl(name), secret: SECRET })),
    })
    rig.app.handle = ({ name }) => (name === 'old' ? { body: '{"verdict":"dead"}' } : {})
    const session = await rig.client.start('say Hello')
    await rig.event('turn.settled', () => true, 'kept')
    const dead = () => rig.list('/api/deliveries?status=dead&handler=old')
    await until('dead letters', async () => (await dead()).length > 2)
    const { handlers = [] } = rig.config
    await rig.stop()
    rig.config = { ...rig.config, handlers: handlers.filter(({ name }) => name !== 'old') }
    await rig.start()
    const letters = await dead()
    expect(await rig.admin('POST', '/api/deliveries/retry', { status: 'dead' })).toMatchObject({ count: 0 })
    const one = await rig.raw('POST', `/api/deliveries/${String(letters[0]?.['id'])}/retry`)
    expect([one.status, one.body['detail']]).toEqual([404, 'there is no handler old'])
    expect(await dead()).toEqual(letters)

    await rig.stop()
    rig.app.handle = () => ({})
    rig.config = { ...rig.config, handlers }
    await rig.start()
    const again = await rig.admin('POST', '/api/deliveries/retry', { status: 'dead' })
    expect(again).toMatchObject({ count: letters.length })
    await rig.event('turn.settled', ({ session_id }) => session_id === session, 'old')
  })

  test('says that the store is from another service', async () => {
    await using rig = await Rig.open({ details, channels: ['poll'] })
    await rig.stop()
    await rig.start()
    expect(warnings(rig)).toEqual([])
    await rig.stop()
    await using other = await Rig.open({ details, start: false })
    const before = rig.config.service
    rig.config = { ...rig.config, service: other.config.service }
    await rig.start()
    expect(warnings(rig)).toEqual([{ before: before.base_url, now: other.config.service.base_url }])
  })
})

/** What the start said of the store. */
function warnings({ program }: Rig): unknown[] {
  const lines = program?.lines.filter(
    ({ level, message }) => level === 'warn' && message.startsWith('store:'),
  )
  return (lines ?? []).map(({ details }) => details)
}

test.runIf(FULL)(
  'delivers stored facts, and accepts commands, while the service accepts connections and never answers',
  async () => {
    await using rig = await Rig.open({ channels: ['webhook', 'poll'] })
    await rig.admin('POST', '/api/handlers/app/pause')
    await rig.client.start('say Hello')
    await until('backlog', async () => (await rig.list('/api/deliveries?status=pending')).length > 2)
    await rig.stop()
    const { promise: over, resolve: goOn } = Promise.withResolvers<undefined>()
    rig.gateway.intercept = () => over
    await rig.start()
    await rig.admin('POST', '/api/handlers/app/resume')
    await until('delivery', async () => (await rig.list('/api/deliveries?status=pending')).length === 0)
    expect(rig.app.delivered().map(({ type }) => type)).toContain('session.created')
    goOn(undefined)
  },
  40_000,
)
