import { describe, expect, test } from 'vitest'
import { createHttp } from '../../src/system/http.ts'
import { faultOf, refusal, startBench } from '../support/service/client.ts'
import { until } from '../support/service/server.ts'
import type { Answerer } from '../support/service/server.ts'

const frames: Answerer = (_asked, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  response.write('retry: 2000\n\n')
  return null
}

describe('the event stream', () => {
  test.each([
    [null, undefined],
    ['0', '0'],
    ['9007199254740993', '9007199254740993'],
  ])('opens after the cursor %s', async (cursor, expected) => {
    await using bench = await startBench(frames)
    const abort = new AbortController()
    const chunks = await bench.service.openStream(cursor, abort.signal)
    for await (const chunk of chunks) {
      expect(Buffer.from(chunk).toString()).toBe('retry: 2000\n\n')
      break
    }
    const [asked] = bench.server.asked
    expect(asked).toMatchObject({
      path: '/v1/events',
      query: {},
      headers: { accept: 'text/event-stream', authorization: 'Bearer svc_pat_one' },
    })
    expect(asked?.headers['last-event-id']).toBe(expected)
    await until(() => bench.server.open() === 0)
  })

  test('closes with the signal', async () => {
    await using bench = await startBench(frames)
    const abort = new AbortController()
    await bench.service.openStream(null, abort.signal)
    expect(bench.server.open()).toBe(1)
    abort.abort()
    await until(() => bench.server.open() === 0)
  })

  test('over the limit of streams gets a time to wait, and does not delay reads', async () => {
    await using bench = await startBench(({ path }) =>
      path === '/v1/events'
        ? refusal(429, 'rate_limit_exceeded', { 'retry-after': '5' })
        : { body: { scopes: [], usable: true } },
    )
    const { signal } = new AbortController()
    const refused = { code: 'rate_limit_exceeded', status: 429, retryAfter: 5000 }
    expect(await faultOf(bench.service.openStream(null, signal))).toMatchObject({
      ...refused,
      requestId: 'req_1',
    })
    expect(await faultOf(bench.service.openStream(null, signal))).toMatchObject(refused)
    expect((await bench.service.health()).usable).toBe(true)
    expect(bench.server.asked).toHaveLength(2)
    await until(() => bench.server.open() <= 1)
  })

  test('is not opened while reads are refused for their rate', async () => {
    await using bench = await startBench(() => refusal(429, 'rate_limit_exceeded', { 'retry-after': '100' }))
    await faultOf(bench.service.health())
    const { signal } = new AbortController()
    expect(await faultOf(bench.service.openStream(null, signal))).toMatchObject({ retryAfter: 100_000 })
    expect(bench.server.asked).toHaveLength(1)
  })

  // 64 KiB in 10-byte packets are 6,500 buffers of some 400 bytes each: their text is copied, none of them is kept.
  test('that is refused in many small chunks keeps none of them', async () => {
    const message = Array.from({ length: 4000 }, (_, index) => `part ${index}`).join(', ')
    const text = Buffer.from(JSON.stringify({ error: { message, code: 'no_streams' } }))
    const wire = Buffer.alloc(10)
    async function* chunks(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(text.subarray(0, 10))
      // Each chunk is written over the one before.
      for (let at = 10; at < text.length; at += 10) yield wire.subarray(0, text.copy(wire, 0, at, at + 10))
    }
    const http = {
      ...createHttp(),
      open: async () => ({ status: 400, headers: {}, chunks: chunks() }),
    }
    await using bench = await startBench(frames, { http })
    expect(await faultOf(bench.service.openStream(null, new AbortController().signal))).toMatchObject({
      code: 'no_streams',
      message: expect.stringMatching(/^part 0, part 1, part 2/),
    })
  })

  test('that is refused with a body that never ends is read for 64 KiB', async () => {
    let read = 0
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (const chunk = Buffer.alloc(1000, 'x'); ; read += chunk.length) yield chunk
    }
    const http = {
      ...createHttp(),
      open: async () => ({ status: 400, headers: {}, chunks: chunks() }),
    }
    await using bench = await startBench(frames, { http })
    expect(await faultOf(bench.service.openStream(null, new AbortController().signal))).toMatchObject({
      status: 400,
    })
    expect(read).toBe(65_000)
  })

  test('rejected for its token is terminal', async () => {
    await using bench = await startBench(() => ({ status: 401 }))
    const { signal } = new AbortController()
    expect(await faultOf(bench.service.openStream(null, signal))).toMatchObject({ status: 401 })
    expect(bench.service.authorized()).toBe(false)
  })

  test('with a wrong content type or status is refused, and its connection is closed', async () => {
    await using bench = await startBench((_asked, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).write('<html>')
      return null
    })
    const { signal } = new AbortController()
    // The page never ends, and the client does not wait for it.
    expect(await faultOf(bench.service.openStream(null, signal))).toMatchObject({
      code: 'malformed_answer',
      status: 200,
    })
    bench.server.answer = () => ({ status: 204, body: '' })
    expect(await faultOf(bench.service.openStream(null, signal))).toMatchObject({ code: 'malformed_answer' })
    await until(() => bench.server.open() === 0)
  })

  test('that is unreachable is distinguished from one that does not answer', async () => {
    await using bench = await startBench(() => null, { timeout: 50 })
    const { signal } = new AbortController()
    expect(await faultOf(bench.service.openStream(null, signal))).toMatchObject({
      code: 'no_reply',
      status: 0,
    })
    await bench.server[Symbol.asyncDispose]()
    expect(await faultOf(bench.service.openStream(null, signal))).toMatchObject({
      code: 'unreachable',
      status: 0,
    })
  })

  test('ends when the client is stopped', async () => {
    await using bench = await startBench(frames)
    await bench.service.openStream(null, new AbortController().signal)
    expect(bench.server.open()).toBe(1)
    bench.service.stop()
    await until(() => bench.server.open() === 0)
  })
})
