import { describe, expect, it, onTestFinished } from 'vitest'
import { createClient, isEvent } from '../../src/client/index.ts'
import type { Reconnection, StreamEvent } from '../../src/client/index.ts'
import type { Emulator } from '../../src/emulator/index.ts'
import { startServer, type TestServer } from '../support/service/server.ts'
import {
  faultOf,
  NO_JITTER,
  PROFILES,
  quickClock,
  readUntil,
  stand,
  until,
  untilTurnEnds,
} from './support.ts'
import { FULL } from '../support/full.ts'

/** Connections come again at once. */
const LIMITS = { retryMs: 10, streamSlotMs: 0 }

/** The persisted events that the service has, as `seq type`. */
function truth(emulator: Emulator, session?: string): string[] {
  return emulator
    .ledger()
    .events.filter((event) => session === undefined || event.session_id === session)
    .map(({ seq, type }) => `${seq} ${type}`)
}

function persisted(events: readonly StreamEvent[]): string[] {
  return events.flatMap(({ seq, type }) => (seq === null ? [] : [`${seq} ${type}`]))
}

describe.each(PROFILES)('an event stream (profile %s)', (profile) => {
  it('that was opened before the message was sent has every event of it, transient ones without a seq', async () => {
    const { client, emulator } = await stand(profile)
    const { id } = await client.sessions.create()
    await using stream = await client.sessions.events(id)
    await client.sessions.send(id, 'think Hmm\nsay Hello there\nshell ls')
    const events = await untilTurnEnds(stream)
    expect(persisted(events)).toEqual(truth(emulator))
    expect(events.every(({ session_id }) => session_id === id)).toBe(true)
    const said = events.find((event) => isEvent(event, 'agent.message'))
    expect(said?.payload.text).toBe('Hello there')
    const deltas = events.filter((event) => isEvent(event, 'agent.text'))
    expect(deltas.map(({ payload }) => payload.delta).join('')).toBe('Hello there')
    expect(deltas.every(({ seq }) => seq === null)).toBe(true)
    const ended = events.at(-1)
    expect((await client.turns.wait(id, ended?.turn_id ?? '', { interval: 10 })).status).toBe('completed')
    expect(stream.cursor).toBe(ended?.seq)
  })

  it('of the organization has all sessions, later ones too', async () => {
    const { client, emulator } = await stand(profile)
    await using stream = await client.events.stream()
    const first = await client.sessions.create({ input: 'say one' })
    const second = await client.sessions.create({ input: 'say two' })
    const open = new Set([first.id, second.id])
    const events = await readUntil(stream[Symbol.asyncIterator](), ({ type, session_id: id }) => {
      if (type === 'turn.ended') open.delete(id ?? '')
      return open.size === 0
    })
    expect(persisted(events)).toEqual(truth(emulator).slice(0, persisted(events).length))
  })

  it('whose connection is cut again and again has every persisted event once and in order', async () => {
    const { client, emulator } = await stand(profile, { limits: LIMITS })
    const { id } = await client.sessions.create()
    const reconnections: Reconnection[] = []
    await using stream = await client.sessions.events(id, {
      after: 0,
      onReconnect: (notice) => reconnections.push(notice),
    })
    const reader = stream[Symbol.asyncIterator]()
    const events: StreamEvent[] = []
    for (let turn = 0; turn < 8; turn++) {
      await client.sessions.send(id, `say turn ${turn}\nshell ls`)
      events.push(...(await readUntil(reader, ({ type }) => type === 'agent.message')))
      emulator.faults.set({ drop_streams: true })
      events.push(...(await readUntil(reader, ({ type }) => type === 'turn.ended')))
    }
    expect(persisted(events)).toEqual(truth(emulator))
    expect(reconnections.length).toBeGreaterThanOrEqual(4)
    expect(reconnections[0]?.after).toMatch(/^\d+$/)
  })

  it('continues where a replay stopped at its limit', async () => {
    const { client, emulator } = await stand(profile, { limits: { ...LIMITS, replayEvents: 7 } })
    const { id } = await client.sessions.create()
    for (let count = 0; count < 30; count++) emulator.publish(id, 'file.changed', { count })
    const reasons: string[] = []
    await using stream = await client.events.stream({
      after: '0',
      onReconnect: ({ reason }) => reasons.push(reason),
    })
    const events = await readUntil(stream[Symbol.asyncIterator](), ({ payload }) => payload['count'] === 29)
    expect(persisted(events)).toEqual(truth(emulator))
    expect(reasons).toEqual(Array.from({ length: 4 }, () => 'replay_stop'))
  })

  it.runIf(FULL)(
    'with a single slot is refused once in a row of windows, and waits for the slot from then on',
    async () => {
      const limits = { retryMs: 1, streamsPerToken: 1, replayEvents: 7 }
      const { client, emulator } = await stand(profile, { limits })
      const { id } = await client.sessions.create()
      for (let count = 0; count < 20; count++) emulator.publish(id, 'file.changed', { count })
      const notices: Reconnection[] = []
      await using stream = await client.events.stream({
        after: '0',
        onReconnect: (notice) => notices.push(notice),
      })
      const events = await readUntil(stream[Symbol.asyncIterator](), ({ payload }) => payload['count'] === 19)
      expect(persisted(events)).toEqual(truth(emulator))
      expect(notices.filter(({ reason }) => reason === 'rate_limit_exceeded')).toHaveLength(1)
      expect(notices.filter(({ reason }) => reason === 'replay_stop').length).toBeGreaterThanOrEqual(2)
    },
  )

  it.runIf(FULL)('waits for the slot that the last connection still holds', async () => {
    const { client, emulator } = await stand(profile, {
      limits: { retryMs: 1, streamsPerToken: 1, streamSlotMs: 300 },
    })
    const { id } = await client.sessions.create()
    const notices: Reconnection[] = []
    await using stream = await client.sessions.events(id, {
      after: '0',
      onReconnect: (notice) => notices.push(notice),
    })
    emulator.faults.set({ drop_streams: true })
    const reader = stream[Symbol.asyncIterator]()
    const next = readUntil(reader, ({ type }) => type === 'file.changed')
    await until(() => (notices.some(({ reason }) => reason === 'rate_limit_exceeded') ? true : undefined))
    emulator.publish(id, 'file.changed', {})
    expect(persisted(await next)).toEqual(truth(emulator))
    expect(notices.at(-1)?.wait).toBeGreaterThanOrEqual(1000)
  })

  it('without data for 45 s is connected again', async () => {
    const { client, emulator } = await stand(profile, { limits: LIMITS }, { clock: quickClock(20) })
    const { id } = await client.sessions.create()
    emulator.faults.set({ stall_streams: true })
    const notices: Reconnection[] = []
    await using stream = await client.sessions.events(id, {
      after: '0',
      onReconnect: (notice) => {
        notices.push(notice)
        emulator.faults.set({})
      },
    })
    emulator.publish(id, 'file.changed', { count: 1 })
    const events = await readUntil(stream[Symbol.asyncIterator](), ({ payload }) => payload['count'] === 1)
    expect(persisted(events)).toEqual(truth(emulator))
    expect(notices[0]).toMatchObject({ reason: 'no_reply' })
  })

  it('ends, and frees its connection, with a break, its close, its signal, or the client', async () => {
    // The service's own `retry:` does not delay a reader that needs no further connection.
    const { client, emulator } = await stand(profile)
    const { id } = await client.sessions.create()
    const closed = () => until(() => (emulator.openStreams() === 0 ? true : undefined))

    for await (const event of await client.sessions.events(id, { after: publish() })) {
      expect(event.type).toBe('file.changed')
      break
    }
    await closed()

    const second = await client.sessions.events(id)
    expect(emulator.openStreams()).toBe(1)
    const pending = second[Symbol.asyncIterator]().next()
    second.close()
    expect(await pending).toEqual({ done: true, value: undefined })
    await closed()

    const abort = new AbortController()
    const third = await client.sessions.events(id, { signal: abort.signal })
    const aborted = faultOf(third[Symbol.asyncIterator]().next())
    abort.abort()
    expect(await aborted).toMatchObject({ code: 'aborted', operation: 'openStream' })
    await closed()

    const fourth = await client.sessions.events(id)
    const stopped = faultOf(fourth[Symbol.asyncIterator]().next())
    await client.close()
    expect(await stopped).toMatchObject({ code: 'stopped' })
    await closed()

    function publish(): number {
      const seq = emulator.publish(id, 'file.changed', {})
      emulator.publish(id, 'file.changed', {})
      return seq
    }
  })

  // [fault stream-5]
  it('loses nothing when its reader is so slow that the service drops it', async () => {
    const { client, emulator } = await stand(profile, { limits: LIMITS })
    const { id } = await client.sessions.create()
    const reasons: string[] = []
    await using stream = await client.sessions.events(id, {
      after: '0',
      onReconnect: ({ reason }) => reasons.push(reason),
    })
    const text = 'x'.repeat(64 * 1024)
    for (let count = 0; count < 400; count++) {
      emulator.publish(id, 'file.changed', { count, text })
      if (count % 20 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(emulator.openStreams()).toBe(0)
    const events = await readUntil(stream[Symbol.asyncIterator](), ({ payload }) => payload['count'] === 399)
    expect(persisted(events)).toEqual(truth(emulator))
    expect(reasons).toHaveLength(1)
  })

  it('ends at once on an error that no new connection fixes', async () => {
    const { client, emulator } = await stand(profile, { limits: LIMITS })
    expect(await faultOf(client.sessions.events('no-such-session'))).toMatchObject({ code: 'not_found' })
    const { id } = await client.sessions.create()
    await using stream = await client.sessions.events(id)
    const gone = faultOf(stream[Symbol.asyncIterator]().next())
    await client.sessions.delete(id)
    expect(await gone).toMatchObject({ code: 'not_found', status: 404 })
    emulator.faults.set({ unauthorized: 1 })
    expect(await faultOf(client.events.stream())).toMatchObject({ status: 401 })
  })

  it('is opened once the service is back, and refused when that takes too long', async () => {
    const { client, emulator } = await stand(profile, { limits: LIMITS })
    await client.health()
    emulator.faults.set({ server_errors: 2 })
    await using _ = await client.events.stream()
    emulator.faults.set({ refuse_streams: 1000 })
    expect(await faultOf(client.events.stream({ timeout: 100 }))).toMatchObject({
      code: 'rate_limit_exceeded',
    })
  })
})

/** A service whose only stream is what `write` makes of it. */
/** `speed`: of the client's clock. The limit of a request is 60 s: at 100, a busy machine has 0.6 s for 40 MiB. */
async function streaming(
  write: (connection: number, cursor: string | undefined) => string[] | null,
  speed = 100,
) {
  let connections = 0
  const server = await startServer((asked, response) => {
    if (asked.path !== '/v1/events') return { body: { paths: {} } }
    const frames = write(++connections, asked.headers['last-event-id'])
    if (frames === null) return { status: 503 }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const frame of frames) response.write(frame)
    response.end()
    return null
  })
  const client = createClient({ baseUrl: server.url, token: 'svc_pat_one', clock: quickClock(speed) })
  onTestFinished(async () => {
    await client.close()
    await server[Symbol.asyncDispose]()
  })
  return { client, server }
}

/** What each connection asked to go on from. */
function cursorsOf({ asked }: TestServer): (string | undefined)[] {
  return asked.flatMap(({ path, headers }) => (path === '/v1/events' ? [headers['last-event-id']] : []))
}

describe('a stream', () => {
  it('passes on what it does not understand, and keeps every digit of a seq', async () => {
    const long = '123456789012345678901'
    const { client } = await streaming(() => [
      'event: odd\nid: 1\ndata: no JSON\n\n',
      `data: {"type":"next","seq":${long},"payload":{"sessionId":"s1","turn":{"id":"t1"}}}\n\n`,
    ])
    await using stream = await client.events.stream()
    const [odd, next] = await readUntil(stream[Symbol.asyncIterator](), ({ type }) => type === 'next')
    expect(odd).toMatchObject({ type: 'odd', seq: '1', payload: {}, data: {}, raw: 'no JSON' })
    expect(next).toMatchObject({ type: 'next', seq: long, session_id: 's1', turn_id: 't1' })
  })

  it('does not trust the name of an event whose stated fields are missing', async () => {
    const { client } = await streaming(() => [
      'data: {"type":"agent.message","seq":1,"payload":{"text":7}}\n\n',
    ])
    await using stream = await client.events.stream()
    const [event] = await readUntil(stream[Symbol.asyncIterator](), () => true)
    expect(event?.type).toBe('agent.message')
    expect(event !== undefined && isEvent(event, 'agent.message')).toBe(false)
  })

  it('leaves out what a service replays from before its cursor', async () => {
    const frames = [1, 2, 3].map(
      (seq) => `id: ${seq}\ndata: {"type":"n${seq}","seq":${seq},"payload":{}}\n\n`,
    )
    const { client, server } = await streaming((connection) => frames.slice(0, connection + 1))
    await using stream = await client.events.stream({ after: 1 })
    const events = await readUntil(stream[Symbol.asyncIterator](), ({ type }) => type === 'n3')
    expect(events.map(({ type }) => type)).toEqual(['n2', 'n3'])
    expect(cursorsOf(server)).toEqual(['1', '2'])
  })

  it('keeps the order of each session where one is sent late, as by a sidecar with a scope', async () => {
    // A replay sends the last ones again.
    const sent = ['44 a', '45 a', '46 a', '20 b', '21 b', '47 a', '46 a', '47 a', '20 b', '21 b', '48 b']
    const { client } = await streaming(() =>
      sent.map((one) => {
        const [seq, session] = one.split(' ')
        return `id: ${seq}\ndata: {"type":"n","seq":${seq},"payload":{"sessionId":"${session}"}}\n\n`
      }),
    )
    await using stream = await client.events.stream({ after: 10 })
    const events = await readUntil(stream[Symbol.asyncIterator](), ({ seq }) => seq === '48')
    expect(events.map(({ seq, session_id: session }) => `${seq} ${session}`)).toEqual([
      '44 a',
      '45 a',
      '46 a',
      '20 b',
      '21 b',
      '47 a',
      '48 b',
    ])
    expect(stream.cursor).toBe('48')
  })

  it('keeps to the `retry:` of the service, within a minute', async () => {
    const hints = [3000, 90_000, 0]
    const { client } = await streaming((connection) => [`retry: ${hints[connection - 1] ?? 1}\n\n`])
    const waits: number[] = []
    await using stream = await client.events.stream({ onReconnect: ({ wait }) => waits.push(wait) })
    const reading = stream[Symbol.asyncIterator]().next()
    await until(() => (waits.length >= 3 ? true : undefined))
    stream.close()
    await reading
    expect(waits.slice(0, 2)).toEqual([3000, 60_000])
  })

  it('goes on at once after a stopped replay, also after a list was refused for its rate', async () => {
    const { client, server } = await streaming((connection) => [
      `id: ${connection}\ndata: {"type":"n${connection}","seq":${connection},"payload":{}}\n\n`,
      `event: replay.stopped\ndata: {"from_seq":${connection}}\n\n`,
    ])
    const { answer } = server
    server.answer = (asked, response) =>
      asked.path === '/v1/sessions'
        ? {
            status: 429,
            headers: { 'retry-after': '50' },
            body: { error: { code: 'rate_limit_exceeded', message: 'too many' } },
          }
        : answer(asked, response)
    const notices: Reconnection[] = []
    await using stream = await client.events.stream({
      after: 0,
      onReconnect: (notice) => notices.push(notice),
    })
    const refused = await faultOf(
      client.sessions.list({}, { timeout: 20_000 })[Symbol.asyncIterator]().next(),
    )
    expect(refused).toMatchObject({ code: 'rate_limit_exceeded' })
    await readUntil(stream[Symbol.asyncIterator](), ({ type }) => type === 'n3')
    expect(notices).toMatchObject([
      { reason: 'replay_stop', wait: 0 },
      { reason: 'rate_limit_exceeded' },
      { reason: 'replay_stop', wait: 0 },
    ])
  })

  // [fault stream-3]
  it('takes a persisted event with a `from_seq` of its own for an event, and no frame after a replay stop for one', async () => {
    const { client, server } = await streaming((connection) =>
      connection === 1
        ? [
            'id: 1\ndata: {"type":"agent.compaction","seq":1,"payload":{"from_seq":1,"to_seq":1}}\n\n',
            'id: 2\ndata: {"type":"n2","seq":2,"payload":{}}\n\n',
            'event: replay.stopped\ndata: {"type":"replay.stopped","seq":null,"payload":{"from_seq":3}}\n\n' +
              'id: 9\ndata: {"type":"n9","seq":9,"payload":{}}\n\n',
          ]
        : ['id: 3\ndata: {"type":"n3","seq":3,"payload":{}}\n\n'],
    )
    const reasons: string[] = []
    await using stream = await client.events.stream({
      after: 0,
      onReconnect: ({ reason }) => reasons.push(reason),
    })
    const events = await readUntil(stream[Symbol.asyncIterator](), ({ type }) => type === 'n3')
    expect(events.map(({ type }) => type)).toEqual(['agent.compaction', 'n2', 'n3'])
    expect(reasons).toEqual(['replay_stop'])
    expect(cursorsOf(server)).toEqual(['0', '2'])
  })

  it('requests the rest of a stopped replay again after the request for it was refused', async () => {
    const { client, server } = await streaming((connection) => {
      if (connection === 2) return null
      const seq = connection === 1 ? 5 : 2
      return [
        `id: ${seq}\ndata: {"type":"n${seq}","seq":${seq},"payload":{}}\n\n`,
        ...(connection === 1
          ? ['data: {"from_seq":2}\n\n']
          : ['id: 6\ndata: {"type":"n6","seq":6,"payload":{}}\n\n']),
      ]
    })
    await using stream = await client.events.stream({ after: 0 })
    await readUntil(stream[Symbol.asyncIterator](), ({ type }) => type === 'n6')
    expect(cursorsOf(server)).toEqual(['0', '2', '2'])
  })

  // [fault stream-10]
  it('gets past an event that is too long to hold: it is cut at 16 MiB and keeps its seq', async () => {
    const mib = 1024 * 1024
    const { client } = await streaming(
      () => [
        'id: 1\ndata: {"type":"n1","seq":1,"payload":{}}\n\n',
        `event: file.changed\nid: 2\ndata: {"type":"file.changed","seq":2,"payload":{"text":"${'x'.repeat(20 * mib)}"}}\n\n`,
        'id: 3\ndata: {"type":"n3","seq":3,"payload":{}}\n\n',
      ],
      1,
    )
    await using stream = await client.events.stream({ after: 0 })
    const events = await readUntil(stream[Symbol.asyncIterator](), ({ type }) => type === 'n3')
    expect(events.map(({ type, seq }) => [type, seq])).toEqual([
      ['n1', '1'],
      ['file.changed', '2'],
      ['n3', '3'],
    ])
    expect(events[1]).toMatchObject({ data: {}, payload: {} })
    expect(events[1]?.raw.length).toBe(16 * mib - 'data: '.length)
  })

  it('ends with an error at an event without end', async () => {
    const line = `data: ${'x'.repeat(1024 * 1024)}\n`
    const { client } = await streaming(() => Array.from({ length: 40 }, () => line), 1)
    await using stream = await client.events.stream()
    expect(await faultOf(stream[Symbol.asyncIterator]().next())).toMatchObject({
      code: 'malformed_answer',
      message: 'a frame is longer than 33554432 characters',
    })
  })

  it('is refused once where the only slot is that of a stream that the client has just closed', async () => {
    // The client asks for the slot within a second: with a clock that runs faster, a busy machine would find it free.
    const clock = quickClock(5)
    let freeAt = 0
    let refused = 0
    const server = await startServer((asked, response) => {
      if (asked.path !== '/v1/events') return { body: { paths: {} } }
      if (clock.steady() < freeAt) {
        refused++
        return { status: 429, body: { error: { code: 'rate_limit_exceeded', message: 'no slot' } } }
      }
      response.on('close', () => (freeAt = clock.steady() + 4500))
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': ping\n\n')
      return null
    })
    const client = createClient({ baseUrl: server.url, token: 'svc_pat_one', clock, random: NO_JITTER })
    onTestFinished(async () => {
      await client.close()
      await server[Symbol.asyncDispose]()
    })
    const first = await client.events.stream()
    first.close()
    await until(() => (freeAt > 0 ? true : undefined))
    await using _ = await client.events.stream()
    expect(refused).toBe(1)
  })

  it('gives up when the service is unreachable for longer than its patience', async () => {
    const { client } = await streaming((connection) => (connection === 1 ? [] : null))
    const notices: Reconnection[] = []
    await using stream = await client.events.stream({
      patience: 30_000,
      onReconnect: (notice) => notices.push(notice),
    })
    expect(await faultOf(stream[Symbol.asyncIterator]().next())).toMatchObject({ code: 'http_503' })
    expect(notices[0]).toMatchObject({ reason: 'closed', after: null })
  })

  it('keeps an `id:` that is no number, and goes on from it', async () => {
    const server = await streaming((_, cursor) =>
      cursor === undefined
        ? ['event: a\nid: a-1\ndata: {}\n\n', 'event: b\nid: a-10\ndata: {}\n\n']
        : ['event: b\nid: a-10\ndata: {}\n\n', 'event: c\nid: a-2\ndata: {}\n\n'],
    )
    await using stream = await server.client.events.stream()
    const events = await readUntil(stream[Symbol.asyncIterator](), ({ type }) => type === 'c')
    expect(events.map(({ type, seq }) => [type, seq])).toEqual([
      ['a', 'a-1'],
      ['b', 'a-10'],
      ['c', 'a-2'],
    ])
    expect(cursorsOf(server.server)).toEqual([undefined, 'a-10'])
  })

  it('does not begin at a value that cannot be sent as a cursor', async () => {
    const { client } = await streaming(() => [])
    await expect(client.events.stream({ after: 'a b' })).rejects.toThrow(TypeError)
  })
})
