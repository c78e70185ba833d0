import { describe, expect, test } from 'vitest'
import { PROFILES } from './engines.ts'
import { assertWhole } from '../support/oracle.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { FULL } from '../support/full.ts'

describe.for(PROFILES)('the stream (%s)', (details) => {
  test('start_from now: sessions that were idle make no facts, and sessions under way do', async () => {
    await using rig = await Rig.open({ details, start: false })
    const { client, emulator } = rig
    const resting = await client.start('say long ago', 'write outputs/old.txt x')
    await client.reached(resting, 'idle')
    const waiting = await client.start('ask Which colour?', 'say {{last}}')
    const [question] = await client.required(waiting)
    const before = emulator.ledger().last_seq
    await rig.start()
    emulator.resolveAction(question?.call_id ?? '', { answer: 'blue' })

    await assertWhole(rig, { afterSeq: before, except: [resting] })
    expect(rig.app.seen().filter(({ session_id }) => session_id === resting)).toEqual([])
    const types = rig.app
      .delivered()
      .filter(({ data }) => data.seq === undefined)
      .map(({ type }) => type)
    expect(types).toEqual(
      expect.arrayContaining(['session.created', 'turn.started', 'action.required', 'turn.completed']),
    )
  })

  test('start_from now: a session that was idle makes facts from its next turn on', async () => {
    await using rig = await Rig.open({ details, start: false })
    const { client, emulator, app } = rig
    const session = await client.start('say long ago')
    await client.reached(session, 'idle')
    const before = emulator.ledger().last_seq
    const old = emulator.ledger().turns.map(({ id }) => id)
    await rig.start()
    await client.send(session, 'say again')
    await rig.event('turn.settled')
    await assertWhole(rig, { afterSeq: before, except: [session] })
    const turns = new Set(app.seen().flatMap(({ data }) => data.turn?.id ?? []))
    expect(turns.size).toBe(1)
    expect(old).not.toContain([...turns][0])
    expect(app.seen().map(({ type }) => type)).not.toContain('session.created')
  })

  test('start_from beginning: everything that the service still shows makes facts', async () => {
    await using rig = await Rig.open({
      details,
      start: false,
      config: { stream: { start_from: 'beginning' } },
    })
    for (const text of ['say one', 'fail two', 'write outputs/three.txt 3']) await rig.client.start(text)
    const last = await rig.client.start('say four')
    await rig.client.reached(last, 'idle')
    await rig.start()
    await assertWhole(rig)
    expect(rig.app.delivered().filter(({ type }) => type === 'session.created')).toHaveLength(4)
  })

  test('start_from beginning that is removed again: events during the stop are still delivered', async () => {
    await using rig = await Rig.open({
      details,
      channels: ['poll'],
      config: { stream: { start_from: 'beginning' } },
    })
    const { client, emulator } = rig
    const old = await client.start('say one')
    await rig.event('turn.settled', ({ session_id: id }) => id === old)
    await rig.stop()
    const fresh = await client.start('say two')
    await client.send(old, 'say three')
    for (const session of [old, fresh]) await client.reached(session, 'idle')
    // A known session that is idle for so long need not be read.
    await emulator.advance(7_200_000)
    rig.config = { ...rig.config, stream: { ...rig.config.stream, start_from: 'now' } }
    await rig.start()
    const created = await rig.event('session.created', ({ session_id: id }) => id === fresh)
    expect(created).toMatchObject({ session_id: fresh })
    await assertWhole(rig, { transcript: false })
  })

  test('start_from a seq: the transcript begins after it', async () => {
    await using rig = await Rig.open({ details, start: false })
    const session = await rig.client.start('say one')
    await rig.client.reached(session, 'idle')
    const from = rig.emulator.ledger().last_seq
    await rig.client.send(session, 'say two')
    await until('second turn', () => rig.emulator.ledger().turns.length === 2)
    await rig.client.reached(session, 'idle')
    rig.config = { ...rig.config, stream: { enabled: true, start_from: String(from) } }
    await rig.start()
    await rig.event('stream.turn.ended')
    const seqs = rig.app.delivered().flatMap(({ data }) => data.seq ?? [])
    expect(Math.min(...seqs)).toBe(from + 1)
    expect(Math.max(...seqs)).toBe(rig.emulator.ledger().last_seq)
  })

  test('a restart continues where the last run ended, and delivers the events of the meantime', async () => {
    await using rig = await Rig.open({ details, tools: { lookup_order: {} } })
    const { client } = rig
    const session = await client.start('say one')
    const calling = await client.create()
    await rig.event('turn.settled')
    await rig.stop()
    await client.send(session, 'say two', 'write outputs/two.txt 2')
    await client.send(calling, 'call lookup_order {"order_id":"42"}', 'say {{last}}')
    await client.reached(session, 'idle')
    await client.required(calling)
    await rig.start()
    await assertWhole(rig, { tools: ['lookup_order'] })
    const ids = rig.app.callbacks.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('dropped connections lose nothing and repeat nothing', async () => {
    await using rig = await Rig.open({ details, channels: ['stream'] })
    const { client, emulator, app } = rig
    const session = await client.create()
    for (let round = 0; round < 5; round++) {
      await client.send(session, `say before ${round}`, 'wait 20ms', `say after ${round}`)
      emulator.faults.set({ drop_streams: true })
      await until('turn', () => emulator.ledger().turns.length === round + 1)
    }
    await assertWhole(rig)
    const ids = app.callbacks.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  // [fault stream-6]
  test('the retry hint is a floor for reconnecting', async () => {
    await using rig = await Rig.open({
      details,
      channels: ['stream'],
      emulator: { limits: { retryMs: 700 } },
    })
    const opened = () => rig.gateway.passed.filter(({ path }) => path.startsWith('/v1/events'))
    const dropped = performance.now()
    rig.emulator.faults.set({ drop_streams: true })
    await until('new stream', () => opened().length === 2)
    expect((opened()[1]?.at ?? 0) - dropped).toBeGreaterThanOrEqual(690)
  })

  // [fault stream-3]
  test('a replay that stops at its limit is continued, several times in a row', async () => {
    await using rig = await Rig.open({
      details,
      channels: ['stream'],
      emulator: { limits: { replayEvents: 7 } },
      config: { stream: { start_from: 'beginning' } },
      start: false,
    })
    const session = await rig.client.start(...Array.from({ length: 40 }, (_, index) => `say ${index}`))
    await rig.client.reached(session, 'idle')
    await rig.start()
    await assertWhole(rig)
    expect(rig.gateway.passed.filter(({ path }) => path.startsWith('/v1/events')).length).toBeGreaterThan(5)
  })

  // [fault stream-3]
  test.runIf(FULL)(
    'with one stream slot a replay in windows is refused once, and waits for the slot from then on',
    async () => {
      await using rig = await Rig.open({
        details,
        channels: ['stream'],
        // The slot of the first window is in use for longer than a busy machine takes to ask for the second.
        emulator: { limits: { replayEvents: 20, streamsPerToken: 1, streamSlotMs: 900 } },
        config: { stream: { start_from: 'beginning' } },
        start: false,
      })
      const session = await rig.client.start('say one')
      await rig.client.reached(session, 'idle')
      for (let count = rig.emulator.ledger().events.length; count < 55; count++)
        rig.emulator.publish(session, 'file.changed', { count })
      await rig.start()
      await assertWhole(rig)
      const opened = rig.gateway.passed.filter(({ path }) => path.startsWith('/v1/events'))
      expect(opened.map(({ status }) => status)).toEqual([200, 429, 200, 200])
    },
  )

  // [fault stream-2]
  test('a cursor that the service does not know repeats nothing and loses no state', async () => {
    await using rig = await Rig.open({ details, channels: ['stream', 'poll'] })
    const { client, emulator, app } = rig
    const session = await client.start('say one')
    await rig.event('turn.settled')
    await rig.stop()
    await client.send(session, 'say missed')
    await until('second turn', () => emulator.ledger().turns.length === 2)
    await client.reached(session, 'idle')
    emulator.faults.set({ lose_cursors: true })
    await rig.start()
    await client.send(session, 'say three')
    await until(
      'third turn',
      () => app.delivered().filter(({ type }) => type === 'turn.settled').length === 3,
    )
    emulator.faults.set({})
    await assertWhole(rig, { transcript: details === 'b' })
    const ids = app.callbacks.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })

  // [fault stream-15]
  test('a stream refused with 429 before it opens is asked for again, not before Retry-After', async () => {
    await using rig = await Rig.open({
      details,
      channels: ['stream'],
      start: false,
      emulator: { limits: { streamSlotMs: 900 } },
    })
    rig.emulator.faults.set({ refuse_streams: 1 })
    await rig.start()
    await until('open stream', async () => (await rig.channel('stream'))['state'] === 'live')
    const opened = rig.gateway.passed.filter(({ path }) => path.startsWith('/v1/events'))
    expect(opened.map(({ status }) => status)).toEqual([429, 200])
    expect((opened[1]?.at ?? 0) - (opened[0]?.at ?? 0)).toBeGreaterThanOrEqual(990)
    await rig.client.start('say Hello')
    await assertWhole(rig)
  })

  test('a quiet turn costs at most six requests from start to settled while the stream is up', async () => {
    await using rig = await Rig.open({ details, channels: ['stream'] })
    const session = await rig.client.create()
    await rig.client.send(session, 'say warm up')
    await rig.event('turn.settled')
    await assertWhole(rig)
    const before = rig.gateway.passed.length
    await rig.client.send(session, 'say one', 'say two', 'wait 200ms', 'say three')
    await until(
      'second turn',
      () => rig.app.delivered().filter(({ type }) => type === 'turn.settled').length === 2,
    )
    await assertWhole(rig)
    const cost = rig.gateway.passed.slice(before).map(({ method, path }) => `${method} ${path}`)
    expect(cost.slice(6)).toEqual([])
  })

  test('transient events reach only handlers that name them, and are never stored', async () => {
    await using rig = await Rig.open({
      details,
      handlers: (app) => [
        { name: 'app', url: app.handlerUrl('app') },
        { name: 'typing', url: app.handlerUrl('typing'), events: ['agent.text'] },
      ],
    })
    await rig.client.start('say one two three')
    await rig.event('agent.text', () => true, 'typing')
    await assertWhole(rig)
    expect(rig.app.seen('app').map(({ type }) => type)).not.toContain('agent.text')
    const stored = await rig.list('/api/events')
    expect(stored.map(({ type }) => type)).not.toContain('agent.text')
    expect(
      rig.app
        .delivered('typing')
        .map(({ data }) => data.payload?.['delta'])
        .join(''),
    ).toBe('one two three')
  })
})
