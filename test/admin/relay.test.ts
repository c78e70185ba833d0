import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createRelay, type Relay } from '../../src/sidecar/admin/relay/relay.ts'
import { transcriptType } from '../../src/core/fact.ts'
import type { Store } from '../../src/core/store.ts'
import { until } from '../support/until.ts'
import { EventReader } from './event-reader.ts'
import { startAdmin, type Running } from './running.ts'
import { clock, frameFact, memoryLog, relayLedger, turnFact, turnRaw } from './seed.ts'

interface World extends Running {
  relay: Relay
  ledger: ReturnType<typeof relayLedger>
  /** Frames of session `s-a` unless it is said, as the stream would bring them. */
  stream: (seqs: readonly number[], sessionId?: string) => Promise<void>
}

async function open(stored: readonly number[] = []): Promise<World> {
  let store: Store | null = null
  const ledger = relayLedger()
  const relay = createRelay({
    store: () => {
      if (store === null) throw new Error('no store')
      return store.read
    },
    clock,
    log: memoryLog(),
    observer: ledger,
  })
  const running = await startAdmin({ relay })
  store = running.store
  onTestFinished(() => running.stop())
  const stream = async (seqs: readonly number[], sessionId = 's-a'): Promise<void> => {
    const batch = {
      facts: seqs.map((seq) => frameFact(String(seq), sessionId)),
      cursor: String(seqs.at(-1)),
    }
    relay.factsAdded((await running.store.log.commit(batch)).facts)
    relay.cursorMoved(batch.cursor)
  }
  if (stored.length > 0) await stream(stored)
  return { ...running, relay, ledger, stream }
}

test('without a cursor there are live frames only, with the type and data as they came', async () => {
  const { base, stream } = await open([1, 2])
  await using reader = await EventReader.open(`${base}/v1/events`)
  await until('retry', () => reader.retry)
  await stream([3])
  await reader.has(1)
  expect(reader.frames).toEqual([{ event: 'agent.message', id: '3', data: frameFact('3', 's-a').body }])
  expect(reader.retry).toBe(2000)
})

// The first look at the log began at its end, which had the frames of this very commit.
test('live frames continue without a gap when a second replica joins', async () => {
  const { base, stream, relay } = await open([1, 2])
  await using reader = await EventReader.open(`${base}/v1/events`)
  await until('retry', () => reader.retry)
  await stream([3])
  await reader.has(1)
  relay.population(2)
  await stream([4, 5])
  await reader.has(3)
  expect(reader.ids).toEqual(['3', '4', '5'])
})

test('a frame arrives whose commit failed, and was stored', async () => {
  const { base, stream, relay, store } = await open([1, 2])
  await using reader = await EventReader.open(`${base}/v1/events`)
  await until('retry', () => reader.retry)
  await stream([3])
  await reader.has(1)
  await store.log.commit({ facts: [frameFact('4', 's-a')], cursor: '4' })
  relay.missed()
  await stream([5])
  await reader.has(3)
  expect(reader.ids).toEqual(['3', '4', '5'])
})

test('the first live frame arrives when a second replica joined before it', async () => {
  const { base, stream, relay } = await open()
  await using reader = await EventReader.open(`${base}/v1/events`)
  await until('retry', () => reader.retry)
  const joined = stream([1])
  relay.population(2)
  await joined
  await reader.has(1)
  await stream([2])
  await reader.has(2)
  expect(reader.ids).toEqual(['1', '2'])
})

const delta = (text: string, after: string | null) => ({
  id: 'evt_t_0_0',
  type: 'agent.text',
  sessionId: 's-a',
  body: `{"type":"agent.text","seq":null,"text":"${text}"}`,
  at: 1,
  after,
})

test('a transient frame of another replica comes behind the stored frames before it', async () => {
  const { base, relay, store } = await open([1, 2])
  relay.population(2)
  await using reader = await EventReader.open(`${base}/v1/events`)
  await until('retry', () => reader.retry)
  await store.log.commit({ facts: [frameFact('3', 's-a')], cursor: '3' })
  for (const text of ['first', 'second']) relay.transientShared(delta(text, '3'))
  await reader.has(3)
  relay.transientShared(delta('third', '3'))
  await store.log.commit({ facts: [frameFact('4', 's-a')], cursor: '4' })
  relay.woken({ topics: new Set(['facts']), hints: [] })
  await reader.has(5)
  expect(reader.frames.map(({ id, data }) => id ?? /"text":"(.+)"/.exec(data)?.[1])).toEqual([
    '3',
    'first',
    'second',
    'third',
    '4',
  ])
})

test('a transient frame of another replica waits for no frame that is not stored', async () => {
  const { base, relay } = await open([1, 2])
  relay.population(2)
  await using reader = await EventReader.open(`${base}/v1/events`)
  await until('retry', () => reader.retry)
  // Frame 3 is of a session of another sidecar.
  relay.transientShared(delta('first', '3'))
  await reader.has(1)
  expect(reader.frames.map(({ event }) => event)).toEqual(['agent.text'])
})

test('a cursor at the end of the log continues live, also after its fact was pruned', async () => {
  const { base, stream, store, relay } = await open([1, 2, 3])
  expect(await store.log.prune(-1)).toMatchObject({ facts: 3 })
  await using reader = await EventReader.open(`${base}/v1/events?transient=1`, { 'last-event-id': '3' })
  await until('a live reader', async () => {
    const body = '{"type":"agent.text","seq":null}'
    relay.transient({ id: 'evt_t_0_0', type: 'agent.text', sessionId: 's-a', body, at: 1, after: null })
    return reader.frames.length > 0
  })
  expect(reader.frames[0]?.event).toBe('agent.text')
  await stream([4])
  await until('a frame', () => reader.frames.some(({ id }) => id === '4'))
})

test('after a cursor, stored frames and then new frames arrive once each and in order', async () => {
  const { base, stream } = await open([1, 2, 3])
  await using reader = await EventReader.open(`${base}/v1/events`, { 'last-event-id': '1' })
  const writing = (async () => {
    for (let seq = 4; seq <= 60; seq++) await stream([seq])
  })()
  await reader.has(59)
  await writing
  expect(reader.ids).toEqual(Array.from({ length: 59 }, (_, index) => String(index + 2)))
})

test('the query parameter resumes too, 0 gives everything, and the header counts before it', async () => {
  const { base } = await open([1, 2, 3])
  await using all = await EventReader.open(`${base}/v1/events?last_event_id=0`)
  await using late = await EventReader.open(`${base}/v1/events?last_event_id=0`, { 'last-event-id': '2' })
  await all.has(3)
  await late.has(1)
  expect(late.ids).toEqual(['3'])
})

test('a cursor that is not in the log gives everything after the nearest', async () => {
  const { base, stream } = await open([10, 20, 9_007_199_254_740_000])
  await using between = await EventReader.open(`${base}/v1/events?last_event_id=15`)
  await using before = await EventReader.open(`${base}/v1/events?last_event_id=0003`)
  await using ahead = await EventReader.open(`${base}/v1/events?last_event_id=9007199254740002`)
  await between.has(2)
  await before.has(3)
  await stream([9_007_199_254_740_001])
  await stream([9_007_199_254_740_003])
  await ahead.has(1)
  await between.has(4)
  expect(ahead.ids).toEqual(['9007199254740003'])
  expect(between.ids.slice(0, 2)).toEqual(['20', '9007199254740000'])
})

test('after a cursor, frames that were held also arrive, although they are stored behind a higher seq', async () => {
  const { base, stream } = await open([1])
  await using live = await EventReader.open(`${base}/v1/events`)
  await until('retry', () => live.retry)
  await stream([2, 6, 7], 's-b')
  await live.has(3)
  // The session of these frames is read only now.
  await stream([3, 5])
  await using after7 = await EventReader.open(`${base}/v1/events`, { 'last-event-id': '7' })
  await using after3 = await EventReader.open(`${base}/v1/events`, { 'last-event-id': '3' })
  await using after2 = await EventReader.open(`${base}/v1/events`, { 'last-event-id': '2' })
  await Promise.all([after7.has(2), after3.has(1), after2.has(4)])
  // A frame with a lower seq may also come directly after the replay.
  await stream([4], 's-c')
  await stream([8], 's-b')
  await Promise.all([live.has(7), after7.has(4), after3.has(3), after2.has(6)])
  expect(live.ids).toEqual(['2', '6', '7', '3', '5', '4', '8'])
  expect(after7.ids).toEqual(['3', '5', '4', '8'])
  expect(after3.ids).toEqual(['5', '4', '8'])
  expect(after2.ids).toEqual(['6', '7', '3', '5', '4', '8'])
})

test('a cursor that is not in the log is followed by frames that are held until the replay has ended', async () => {
  const { base, stream } = await open([1, 6, 7])
  await using all = await EventReader.open(`${base}/v1/events`, { 'last-event-id': '0' })
  await using after2 = await EventReader.open(`${base}/v1/events`, { 'last-event-id': '2' })
  await Promise.all([all.has(3), after2.has(2)])
  // The session of these frames is read only now.
  await stream([3, 5], 's-c')
  await stream([8])
  await Promise.all([all.has(6), after2.has(5)])
  expect(all.ids).toEqual(['1', '6', '7', '3', '5', '8'])
  expect(after2.ids).toEqual(['6', '7', '3', '5', '8'])
})

test('the stream of one session has only its frames, with state facts and other sessions in between in the log', async () => {
  const world = await open([1])
  await world.stream([2], 's-b')
  await world.store.log.commit({ facts: [turnFact('turn.completed', turnRaw('turn_1', 's-a'))] })
  await world.stream([3])
  await using reader = await EventReader.open(`${world.base}/v1/sessions/s-a/events?last_event_id=0`)
  await reader.has(2)
  await world.stream([4], 's-b')
  await world.stream([5])
  await reader.has(3)
  expect(reader.ids).toEqual(['1', '3', '5'])
})

test('a frame is sent under its own name, even if its fact has another', async () => {
  const { base, store } = await open()
  await store.log.commit({ facts: [frameFact('1', 's-a', { type: transcriptType('turn.ended') })] })
  await using reader = await EventReader.open(`${base}/v1/events?last_event_id=0`)
  await reader.has(1)
  expect(reader.frames[0]?.event).toBe('turn.ended')
})

test('data of several lines arrives unchanged', async () => {
  const { base, store } = await open()
  const body = '{\n  "type": "agent.message",\n  "seq": 1\n}'
  await store.log.commit({ facts: [frameFact('1', 's-a', { body })] })
  await using reader = await EventReader.open(`${base}/v1/events?last_event_id=0`)
  expect((await reader.has(1))[0]?.data).toBe(body)
})

test('transient frames go to every reader that does not exclude them, without an id', async () => {
  const { base, relay, stream } = await open()
  await using plain = await EventReader.open(`${base}/v1/events`)
  await using asked = await EventReader.open(`${base}/v1/events?transient=1`)
  await using without = await EventReader.open(`${base}/v1/events?transient=0`)
  await using other = await EventReader.open(`${base}/v1/sessions/s-b/events`)
  const readers = [plain, asked, without, other]
  await until('retry', () => readers.every(({ retry }) => retry !== null))
  relay.transient({
    id: 'evt_t_0_0',
    type: 'agent.text',
    sessionId: 's-a',
    body: '{"seq":null}',
    at: 1,
    after: null,
  })
  await stream([1])
  await stream([2], 's-b')
  for (const reader of [plain, asked]) {
    await reader.has(3)
    expect(reader.frames[0]).toEqual({ event: 'agent.text', id: undefined, data: '{"seq":null}' })
    expect(reader.ids).toEqual([undefined, '1', '2'])
  }
  await without.has(2)
  expect(without.ids).toEqual(['1', '2'])
  await other.has(1)
  expect(other.ids).toEqual(['2'])
})

/** A reader that has got the first bytes of its answer, and reads no more. */
async function stuckReader(base: string): Promise<Socket> {
  const stuck = connect(Number(new URL(base).port), '127.0.0.1')
  onTestFinished(() => void stuck.destroy())
  stuck.write('GET /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n')
  await once(stuck, 'data')
  stuck.pause()
  return stuck
}

test('a reader that does not read loses transient frames, and is not cut for them', async () => {
  const { base, stream, relay, ledger } = await open()
  const stuck = await stuckReader(base)
  await using quick = await EventReader.open(`${base}/v1/events`)
  await until('retry', () => quick.retry)
  const body = JSON.stringify({ seq: null, payload: 'x'.repeat(512 * 1024) })
  for (let count = 1; count <= 64; count++) {
    relay.transient({ id: 'evt_t_0_0', type: 'agent.text', sessionId: 's-a', body, at: 1, after: null })
    await quick.has(count)
  }
  await stream([1])
  await quick.has(65)
  let text = ''
  stuck.on('data', (chunk) => (text = (text + chunk.toString()).slice(-4096)))
  stuck.resume()
  await until('the persisted frame', () => text.includes('id: 1\n'))
  expect(stuck.bytesRead).toBeLessThan(24 * 1024 * 1024)
  expect(ledger.counts).not.toHaveProperty('slow')
})

test('a replay of more than 50,000 frames stops and names the position to continue from', async () => {
  const { base, store } = await open()
  const total = 50_010
  for (let from = 1; from <= total; from += 5001) {
    const facts = Array.from({ length: 5001 }, (_, index) => frameFact(String(from + index), 's-a'))
    await store.log.commit({ facts })
  }
  await using reader = await EventReader.open(`${base}/v1/events?last_event_id=0`)
  await until('end', () => reader.ended, 30_000)
  const stop = reader.frames.at(-1)
  expect(reader.frames).toHaveLength(50_001)
  expect(stop).toMatchObject({ event: 'replay.stopped', id: undefined })
  expect(JSON.parse(stop?.data ?? '')).toMatchObject({
    from_seq: 50_000,
    seq: null,
    payload: { from_seq: 50_000 },
  })
  await using rest = await EventReader.open(`${base}/v1/events?last_event_id=50000`)
  await rest.has(10)
  expect(rest.ids).toEqual(Array.from({ length: 10 }, (_, index) => String(50_001 + index)))
})

test('an invalid cursor and an unknown parameter are refused as the service refuses them', async () => {
  const { get } = await open()
  for (const reply of [
    await get('/v1/events?last_event_id=abc'),
    await get('/v1/events', { 'last-event-id': 'abc' }),
    await get('/v1/events?since=4'),
  ]) {
    expect(reply.status).toBe(400)
    expect(reply.headers['content-type']).toBe('application/problem+json')
    expect(reply.json).toMatchObject({ status: 400, error: { code: 'invalid_request' } })
  }
})

test('the token of the admin listener is required', async () => {
  const running = await startAdmin({ token: () => 'admin-token' })
  onTestFinished(() => running.stop())
  expect((await running.get('/v1/events')).status).toBe(401)
  expect((await running.get('/v1/sessions/s-a/events')).json).toMatchObject({
    error: { code: 'unauthorized' },
  })
})

test('with the stream off there is nothing to relay', async () => {
  const running = await startAdmin()
  onTestFinished(() => running.stop())
  const reply = await running.get('/v1/events')
  expect(reply.status).toBe(404)
  expect(reply.json['detail']).toContain('stream.enabled')
})

test('a reader that does not read is cut past 8 MiB, and delays no other reader', async () => {
  const { base, stream, store, relay } = await open()
  const stuck = await stuckReader(base)
  await using quick = await EventReader.open(`${base}/v1/events`)
  await until('retry', () => quick.retry)
  // What the kernel takes for the one that does not read comes on top of the 8 MiB.
  const body = JSON.stringify({ seq: 1, payload: 'x'.repeat(1024 * 1024) })
  for (let seq = 1; seq <= 24; seq++) {
    const { facts } = await store.log.commit({ facts: [frameFact(String(seq), 's-a', { body })] })
    relay.factsAdded(facts)
    await quick.has(seq)
  }
  stuck.on('error', () => undefined)
  stuck.resume()
  await once(stuck, 'close')
  expect(stuck.bytesRead).toBeLessThan(24 * 1024 * 1024)
  await stream([100])
  await quick.has(25)
})

test('reports its number of readers, the frames sent to them, and how each ended', async () => {
  const { base, stream, ledger, stop } = await open([1, 2, 3])
  await using leaving = await EventReader.open(`${base}/v1/events?last_event_id=0`)
  await leaving.has(3)
  await using staying = await EventReader.open(`${base}/v1/sessions/s-b/events`)
  await until('two readers', () => ledger.readers === 2)
  await stream([4])
  await stream([5], 's-b')
  await leaving.has(5)
  await staying.has(1)
  expect(ledger.counts).toEqual({ replay: 3, live: 3 })
  await leaving[Symbol.asyncDispose]()
  await until('one reader', () => ledger.readers === 1)
  await stop()
  await until('none', () => ledger.readers === 0)
  expect(ledger.counts).toMatchObject({ left: 1, stopped: 1 })
})

test("a session's replay reads only that session's facts, however long the log is", async () => {
  const { store } = await open()
  const facts = Array.from({ length: 20_000 }, (_, seq) =>
    frameFact(String(seq + 1), seq % 4000 === 0 ? 's-a' : 's-b'),
  )
  await store.log.commit({ facts })
  const { frames, next, more } = await store.read.frames({ after: 0, sessionId: 's-a' })
  expect(frames.map(({ seq }) => seq)).toEqual(['1', '4001', '8001', '12001', '16001'])
  expect({ next, more }).toEqual({ next: 20_000, more: false })
})

test('stopping ends every stream', async () => {
  const { base, stop } = await startAdminWithRelay()
  await using reader = await EventReader.open(`${base}/v1/events`)
  await stop()
  await expect.poll(() => reader.ended).toBe(true)
})

async function startAdminWithRelay(): Promise<Running> {
  const relay = createRelay({
    store: () => {
      throw new Error('an unexpected replay')
    },
    clock,
    log: memoryLog(),
    observer: relayLedger(),
  })
  return await startAdmin({ relay })
}
