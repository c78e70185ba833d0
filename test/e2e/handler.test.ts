import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { CloudEvent, HTTP } from 'cloudevents'
import { describe, expect, test } from 'vitest'
import { DeadLetter } from '../../src/index.ts'
import { NEXT_SECRET, SECRET, type App, type Callback } from '../support/app.ts'
import { PROFILES } from './engines.ts'
import { order } from '../checker/reports.ts'
import { assertWhole } from '../support/oracle.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

const INDEX = fileURLToPath(new URL('../../src/index.ts', import.meta.url))

/** Fails the first attempts of turn.settled in the given way. */
function settledFails(...answers: Awaited<ReturnType<App['handle']>>[]): App['handle'] {
  return ({ events }, nth) => (events[0]?.type === 'turn.settled' ? (answers[nth - 1] ?? {}) : {})
}

function attemptsOf(app: App, type: string): Callback[] {
  return app.callbacks.filter(({ events }) => events.some((event) => event.type === type))
}

describe.for(PROFILES)('handlers (%s)', (details) => {
  test('500 is tried again under the same id with the next attempt number', async () => {
    await using rig = await Rig.open({ details })
    rig.app.handle = settledFails(
      { status: 500 },
      { status: 404 },
      { status: 302, headers: { location: rig.app.handlerUrl('elsewhere') } },
    )
    await rig.client.start('say Hello')
    await assertWhole(rig)
    const attempts = attemptsOf(rig.app, 'turn.settled')
    expect(attempts.map(({ events }) => events[0]?.delivery.attempt)).toEqual([1, 2, 3, 4])
    expect(new Set(attempts.map(({ id }) => id)).size).toBe(1)
    expect(attempts.every(({ signedWith }) => signedWith.includes(SECRET))).toBe(true)
    expect(rig.app.seen('elsewhere')).toEqual([])
  })

  test('an unreachable handler uses up no attempts and gets its backlog when it is back', async () => {
    await using rig = await Rig.open({
      details,
      handler: { retry: { attempts: 2, base: '10ms', max: '20ms' } },
    })
    await rig.app.disconnect()
    for (let turn = 0; turn < 5; turn++) await rig.client.start(`say ${turn}`)
    await until(
      'handler that is down',
      async () => (await rig.list('/api/handlers'))[0]?.['state'] === 'down',
    )
    await until(
      'five turns',
      () => rig.emulator.ledger().turns.filter(({ artifacts }) => artifacts === 'ready').length === 5,
    )
    await rig.app.back()
    await assertWhole(rig)
    expect(rig.app.seen().every(({ delivery }) => delivery.attempt === 1)).toBe(true)
  })

  // [fault callback-7]
  test('a poison session delays no other', async () => {
    await using rig = await Rig.open({
      details,
      handler: { retry: { attempts: 100, base: '50ms', max: '200ms' }, concurrency: 2 },
    })
    const poison = await rig.client.create()
    rig.app.handle = ({ events }) => (events[0]?.session_id === poison ? { status: 500 } : {})
    await rig.client.send(poison, 'say never')
    for (let turn = 0; turn < 5; turn++) await rig.client.start(`say ${turn}`)
    await until(
      'five others',
      () => rig.app.delivered().filter(({ type }) => type === 'turn.settled').length === 5,
    )
    expect(rig.app.delivered().some(({ session_id }) => session_id === poison)).toBe(false)
    rig.app.handle = () => ({})
    await assertWhole(rig)
  })
})

describe.for(PROFILES)('all handlers have one address (%s)', (details) => {
  test('long runs of tools delay no callback, and no tool or handler delays another', async () => {
    await using rig = await Rig.open({
      details,
      handlers: (app) =>
        ['app', 'audit'].map((name) => ({
          name,
          url: app.handlerUrl(name),
          secret: SECRET,
          concurrency: 1,
          timeout: '1s',
          retry: { attempts: 2, base: '20ms' },
        })),
      tools: { lookup_order: { concurrency: 1, timeout: '19s' }, check_stock: { concurrency: 1 } },
    })
    const { client, app } = rig
    const { promise: over, resolve: end } = Promise.withResolvers<object>()
    app.run = ({ call }) => (call.name === 'lookup_order' ? over : { body: 'in stock' })
    await client.start('call lookup_order {}', 'say {{last}}')
    await until('a long run', () => app.runs.length === 1)
    const other = await client.start('call check_stock {}', 'say {{last}}')
    for (const name of ['app', 'audit'])
      await rig.event('turn.settled', ({ session_id: id }) => id === other, name)
    expect(app.runs.map(({ call }) => call.name)).toEqual(['lookup_order', 'check_stock'])
    end({})
    await assertWhole(rig, { tools: ['lookup_order', 'check_stock'] })
    expect(app.callbacks.every(({ events }) => events[0]?.delivery.attempt === 1)).toBe(true)
  })
})

describe.for(PROFILES)('what handlers answer (%s)', (details) => {
  test('Retry-After is honoured', async () => {
    await using rig = await Rig.open({ details })
    rig.app.handle = settledFails({ status: 503, headers: { 'retry-after': '1' } })
    await rig.client.start('say Hello')
    await assertWhole(rig)
    const [first, second] = attemptsOf(rig.app, 'turn.settled')
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(1000)
  })

  // [fault callback-1]
  test('a handler that hangs is cut at its timeout, and the event is repeated', async () => {
    await using rig = await Rig.open({
      details,
      handler: { timeout: '100ms', retry: { attempts: 5, base: '10ms', max: '20ms' } },
    })
    rig.app.handle = settledFails({ hang: true }, { delay: 500 })
    await rig.client.start('say Hello')
    await assertWhole(rig)
    expect(attemptsOf(rig.app, 'turn.settled').length).toBeGreaterThanOrEqual(3)
  })

  test('verdicts in a 2xx: retry repeats the delivery, dead makes a dead letter and the lane continues', async () => {
    await using rig = await Rig.open({ details })
    rig.app.handle = ({ events }, nth) => {
      if (events[0]?.type === 'agent.message') return { body: '{"verdict":"dead"}' }
      return events[0]?.type === 'turn.settled' && nth === 1 ? { body: '{"verdict":"retry"}' } : {}
    }
    await rig.client.start('say Hello')
    await assertWhole(rig, { dead: 1 })
    expect(attemptsOf(rig.app, 'turn.settled')).toHaveLength(2)
    expect(attemptsOf(rig.app, 'agent.message')).toHaveLength(1)
  })

  // [fault callback-2]
  test('410 pauses the handler and keeps its backlog until it is resumed, also over a restart', async () => {
    await using rig = await Rig.open({ details })
    rig.app.handle = () => ({ status: 410 })
    const session = await rig.client.start('say Hello')
    await until('paused handler', async () => (await rig.list('/api/handlers'))[0]?.['state'] === 'paused')
    await rig.client.reached(session, 'idle')
    const [before] = await rig.list('/api/handlers')
    await rig.stop()
    await rig.start()
    const [after] = await rig.list('/api/handlers')
    expect(after).toMatchObject({ state: 'paused', last_error: before?.['last_error'] })
    expect(Number(after?.['since']) - Number(before?.['since'])).toBeLessThan(100)
    const asked = rig.app.callbacks.length
    rig.app.handle = () => ({})
    await rig.client.send(session, 'say more')
    await until(
      'second turn',
      () => rig.emulator.ledger().turns.filter(({ artifacts }) => artifacts === 'ready').length === 2,
    )
    await until('events', async () => (await rig.list('/api/events?type=turn.settled')).length === 2)
    expect(rig.app.callbacks.length).toBe(asked)
    await rig.admin('POST', '/api/handlers/app/resume')
    await assertWhole(rig)
    expect(rig.app.seen().every(({ delivery }) => delivery.attempt === 1)).toBe(true)
  })

  test('an operator pauses a handler, whose backlog waits, and resumes it', async () => {
    await using rig = await Rig.open({ details })
    await rig.admin('POST', '/api/handlers/app/pause')
    await rig.client.start('say Hello')
    await until('events', async () => (await rig.list('/api/events?type=turn.settled')).length === 1)
    expect(rig.app.callbacks).toEqual([])
    await rig.admin('POST', '/api/handlers/app/resume')
    await assertWhole(rig)
  })

  test('replay hands a handler past events again under their own ids', async () => {
    await using rig = await Rig.open({ details })
    await rig.client.start('say Hello', 'write outputs/r.txt x')
    await assertWhole(rig)
    const before = rig.app.delivered().map(({ id }) => id)
    await rig.admin('POST', '/api/replay', { handler: 'app', from: '0' })
    await until('all of it again', () => rig.app.delivered().length === before.length * 2)
    const again = rig.app
      .delivered()
      .slice(before.length)
      .map(({ id }) => id)
    expect(again).toEqual(before)
  })

  test('a fact that a handler deferred until tomorrow is delivered now on command', async () => {
    await using rig = await Rig.open({ details })
    rig.app.handle = ({ events }) =>
      events[0]?.type === 'turn.completed' ? { status: 503, headers: { 'retry-after': '86400' } } : {}
    await rig.client.start('say Hello')
    const [waiting] = await until('delivery that is put off', async () => {
      const rows = await rig.list('/api/deliveries?status=pending')
      return rows.some(({ attempts }) => Array.isArray(attempts) && attempts.length > 0) && rows
    })
    const path = `/api/deliveries/${String(waiting?.['id'])}/retry`
    rig.app.handle = () => ({})
    expect(await rig.admin('POST', path)).toMatchObject({ count: 1 })
    await rig.event('turn.settled')
    await assertWhole(rig)
  })

  test('when the attempts are used up, the delivery is dead, the lane continues, and a retry redelivers it', async () => {
    await using rig = await Rig.open({
      details,
      handler: { retry: { attempts: 3, base: '5ms', max: '10ms' } },
    })
    const body = (nth: number) => `the order is unknown (${nth})`
    rig.app.handle = ({ events }, nth) =>
      events[0]?.type === 'turn.completed' ? { status: 500, body: body(nth) } : {}
    await rig.client.start('say Hello')
    await rig.event('turn.settled')
    const [dead] = await until('dead letter', async () => {
      const rows = await rig.list('/api/deliveries?status=dead')
      return rows.length > 0 && rows
    })
    expect(dead).toMatchObject({
      type: 'turn.completed',
      attempts: [{ status: 500 }, { status: 500 }, { status: 500 }],
      last_answer: body(3),
    })
    rig.app.handle = () => ({})
    expect(await rig.admin('POST', '/api/deliveries/retry', { handler: 'app', dry_run: true })).toMatchObject(
      {
        count: 1,
      },
    )
    await rig.admin('POST', `/api/deliveries/${String(dead?.['id'])}/retry`)
    await rig.event('turn.completed')
    await until('no dead letter', async () => (await rig.list('/api/deliveries?status=dead')).length === 0)
    // What it said stays until the fact is pruned, for the operator.
    const path = `/api/deliveries/${String(dead?.['id'])}`
    await until('delivered', async () => (await rig.admin('GET', path))['status'] === 'delivered')
    expect(await rig.admin('GET', path)).toMatchObject({ last_answer: body(3) })
  })

  // [fault callback-5]
  test('an event that resets the connection while others succeed is a failed attempt, and the handler stays up', async () => {
    await using rig = await Rig.open({
      details,
      handler: { retry: { attempts: 2, base: '10ms', max: '20ms' } },
    })
    const poison = await rig.client.create()
    rig.app.handle = ({ events: [event] }) =>
      event?.session_id === poison && event.type === 'turn.started' ? { reset: true } : {}
    await rig.client.send(poison, 'say Hello')
    const others = await rig.client.create()
    const dead = await until(
      'dead letter',
      async () => {
        await rig.client.send(others, 'say Hello')
        await rig.client.reached(others, 'idle')
        return (await rig.list('/api/deliveries?status=dead'))[0]
      },
      15_000,
    )
    expect(dead).toMatchObject({ type: 'turn.started', session_id: poison })
    await rig.event('turn.settled', ({ session_id }) => session_id === poison)
    await until(
      'no pending delivery',
      async () => (await rig.list('/api/deliveries?status=pending')).length === 0,
    )
    expect(await rig.list('/api/deliveries?status=dead')).toHaveLength(1)
  })

  test('CloudEvents are parsed by the public library', async () => {
    await using rig = await Rig.open({ details, handler: { format: 'cloudevents' } })
    await rig.client.start('say Hello', 'write outputs/r.txt x')
    await assertWhole(rig)
    for (const { headers, raw, id, signedWith } of rig.app.callbacks) {
      expect(headers['content-type']).toMatch(/^application\/cloudevents\+json/)
      const event = HTTP.toEvent<unknown>({ headers, body: raw })
      if (!(event instanceof CloudEvent)) throw new Error('not one event')
      expect(event.validate()).toBe(true)
      expect(event.id).toBe(id)
      expect(signedWith).toEqual([SECRET])
      expect(event.subject).toBe(rig.emulator.ledger().sessions[0]?.id)
    }
  })
})

test.for([
  ['standard', 'a'],
  ['standard', 'b'],
  ['cloudevents', 'a'],
  ['cloudevents', 'b'],
] as const)('batches are arrays whose elements keep their own ids (%s, %s)', async ([format, details]) => {
  await using rig = await Rig.open({ details, handler: { format, batch: { max: 10, wait: '50ms' } } })
  await rig.client.start('say 1', 'say 2', 'say 3', 'say 4')
  await rig.client.start('say 5', 'say 6')
  await assertWhole(rig)
  const { callbacks } = rig.app
  expect(Math.max(...callbacks.map(({ events }) => events.length))).toBeGreaterThan(1)
  expect(callbacks.every(({ raw, events }) => raw.startsWith('[') && events.length <= 10)).toBe(true)
  expect(new Set(callbacks.map(({ id }) => id)).size).toBe(callbacks.length)
  if (format === 'standard') return
  for (const { headers, raw } of callbacks) {
    expect(headers['content-type']).toMatch(/^application\/cloudevents-batch\+json/)
    const events = HTTP.toEvent<unknown>({ headers, body: raw })
    expect(Array.isArray(events) && events.every((event) => new CloudEvent(event).validate())).toBe(true)
  }
})

describe.for(PROFILES)('kinds of handlers (%s)', (details) => {
  test('a failed batch is repeated complete, with the same id', async () => {
    await using rig = await Rig.open({ details, handler: { batch: { max: 50, wait: '100ms' } } })
    rig.app.handle = (_callback, nth) => (nth === 1 ? { status: 500 } : {})
    await rig.client.start('say 1', 'say 2', 'say 3')
    await assertWhole(rig)
    for (const { id } of rig.app.callbacks) {
      const same = rig.app.callbacks.filter((other) => other.id === id)
      expect(new Set(same.map(({ events }) => events.map((event) => event.id).join())).size).toBe(1)
    }
  })

  test('an unordered handler gets everything, without waiting for one that fails', async () => {
    await using rig = await Rig.open({
      details,
      handler: { ordered: false, retry: { attempts: 100, base: '100ms', max: '300ms' } },
    })
    let poisoned = true
    rig.app.handle = ({ events }) => (poisoned && events[0]?.type === 'user.message' ? { status: 500 } : {})
    await rig.client.start('say Hello')
    await rig.event('turn.settled')
    expect(rig.app.delivered().map(({ type }) => type)).not.toContain('user.message')
    poisoned = false
    await until('the late one', () => rig.app.delivered().some(({ type }) => type === 'user.message'))
  })

  test('an unordered handler that is made ordered gets its backlog in order, too', async () => {
    await using rig = await Rig.open({ details, handler: { ordered: false } })
    rig.app.handle = () => ({ status: 503, headers: { 'retry-after': '1' } })
    const session = await rig.client.start('say one')
    await until('a backlog', async () => (await rig.list('/api/deliveries?status=pending')).length > 8)
    await rig.client.reached(session, 'idle')
    await rig.stop()
    rig.app.callbacks.length = 0
    rig.app.handle = () => ({})
    rig.config = {
      ...rig.config,
      handlers: rig.config.handlers?.map((handler) => ({ ...handler, ordered: true })) ?? [],
    }
    await rig.start()
    await rig.client.send(session, 'say two')
    await assertWhole(rig)
    expect(order(rig.app.seen())).toEqual([])
  })

  test('an ordered handler sees each session in order while attempts fail at random', async () => {
    await using rig = await Rig.open({
      details,
      handler: { retry: { attempts: 50, base: '1ms', max: '5ms' } },
    })
    let count = 0
    rig.app.handle = () => (count++ % 3 === 0 ? { status: 500 } : {})
    for (let turn = 0; turn < 6; turn++) await rig.client.start('say 1', 'say 2', 'write outputs/x.txt x')
    await assertWhole(rig)
    expect(order(rig.app.seen())).toEqual([])
  })

  test('without a secret callbacks are unsigned, with several every one signs', async () => {
    await using rig = await Rig.open({
      details,
      handlers: (app) => [
        { name: 'app', url: app.handlerUrl('app') },
        { name: 'both', url: app.handlerUrl('both'), secrets: [NEXT_SECRET, SECRET] },
      ],
    })
    await rig.client.start('say Hello')
    await assertWhole(rig)
    await assertWhole(rig, { handler: 'both' })
    for (const { name, signedWith, headers } of rig.app.callbacks) {
      expect(signedWith).toEqual(name === 'both' ? [SECRET, NEXT_SECRET] : [])
      expect(headers['webhook-signature'] === undefined).toBe(name === 'app')
    }
  })

  test('a rotated secret signs from the next callback on, without a restart', async () => {
    await using rig = await Rig.open({ details, start: false })
    const file = path.join(rig.folder, 'secret')
    await writeFile(file, SECRET)
    const [handler] = rig.config.handlers ?? []
    if (handler === undefined) throw new Error('no handler')
    const { secret, ...rest } = handler
    expect(secret).toBe(SECRET)
    rig.config = { ...rig.config, handlers: [{ ...rest, secret_file: file }] }
    await rig.start()
    const session = await rig.client.start('say before')
    await assertWhole(rig)
    expect(new Set(rig.app.callbacks.flatMap(({ signedWith }) => signedWith))).toEqual(new Set([SECRET]))
    await writeFile(file, NEXT_SECRET)
    await until('the new secret', async () => {
      await rig.client.send(session, 'say again')
      await rig.client.reached(session, 'idle')
      return rig.app.callbacks.some(({ signedWith }) => signedWith.includes(NEXT_SECRET))
    })
  })

  test('functions of the library are handlers: an exception means retry, DeadLetter means dead', async () => {
    const seen: string[] = []
    await using rig = await Rig.open({
      details,
      handlers: () => [],
      prepare: (sidecar) =>
        sidecar
          .on('turn.settled', (event, { attempt }) => {
            seen.push(`${event.data.turn.status} ${attempt}`)
            if (attempt === 1) throw new Error('not yet')
          })
          .on('agent.message', () => {
            seen.push('message')
            throw new DeadLetter('never')
          }),
    })
    await rig.client.start('say Hello')
    await until('second attempt', () => seen.includes('completed 2'))
    expect(seen).toEqual(['message', 'completed 1', 'completed 2'])
    expect(await rig.list('/api/deliveries?status=dead')).toMatchObject([
      { type: 'agent.message', handler: 'library' },
    ])
  })

  test('a handler that is named as that of the functions is refused', async () => {
    const opening = Rig.open({
      details,
      handler: { name: 'library' },
      prepare: (sidecar) => sidecar.on('*', () => undefined),
    })
    await expect(opening).rejects.toThrow('handler library is defined twice')
  })

  test('a module of the configuration is a handler with its tools', async () => {
    await using rig = await Rig.open({ details, start: false })
    const module = path.join(rig.folder, 'handlers.ts')
    await writeFile(
      module,
      `import { appendFileSync } from 'node:fs'
     import { defineHandlers, tool } from ${JSON.stringify(INDEX)}
     const log = (text) => appendFileSync(${JSON.stringify(path.join(rig.folder, 'log'))}, text + '\\n')
     export default defineHandlers({
       on: { 'turn.*': (event) => log(event.type) },
       tools: [tool({ name: 'double', description: 'doubles', input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
         run: ({ n }) => ({ doubled: n * 2 }) })],
     })`,
    )
    const [handler] = rig.config.handlers ?? []
    if (handler === undefined) throw new Error('no handler')
    rig.config = { ...rig.config, handlers: [handler, { name: 'inside', module, events: ['turn.*'] }] }
    await rig.start()
    await rig.client.start('call double {"n":21}', 'say {{last}}')
    await rig.event('turn.settled')
    expect(rig.emulator.ledger().answers).toMatchObject([{ output: '{"doubled":42}' }])
    await until('the module’s log', async () => {
      const rows = await rig.list('/api/deliveries?handler=inside')
      return rows.length === 3 && rows.every(({ status }) => status === 'delivered')
    })
  })
})
