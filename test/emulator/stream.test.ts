import { describe, expect, it } from 'vitest'
import { listen, type Frame } from './listener.ts'
import { open, PROFILES, until } from './support.ts'

const persisted = (frames: readonly Frame[]): Frame[] => frames.filter(({ id }) => id !== undefined)

describe.each(PROFILES)('event streams, profile %s', (profile) => {
  it('EVT-01 EVT-03 EVT-08 EVT-09 EVT-10 EVT-11 EVT-12 EVT-13 EVT-14 EVT-25 EVT-29 gives live frames of every session', async () => {
    const bench = await open(profile)
    await bench.session({ input: bench.message('say too early') })
    await until(() => (bench.emulator.ledger().turns[0]?.completed_at == null ? undefined : true))
    const stream = await listen(bench)
    expect(stream.response.headers['content-type']).toBe('text/event-stream')
    expect(stream.retry).toBe(profile === 'a' ? 8000 : 2000)
    const id = await bench.session()
    await bench.send(id, 'say hello')
    await stream.hear('turn.ended')
    for (const frame of persisted(stream.frames)) {
      expect(frame.data).toMatchObject({
        type: frame.event,
        seq: Number(frame.id),
        internal_type: expect.any(String),
      })
      const place =
        profile === 'a'
          ? frame.data['session_id']
          : (frame.data['payload'] as Record<string, unknown>)['sessionId']
      expect(place).toBe(id)
    }
    expect(stream.text).not.toContain('too early')
    const names = persisted(stream.frames).map(({ event }) => event)
    expect(names).toEqual(['user.message', 'sandbox.created', 'turn.started', 'agent.message', 'turn.ended'])
  })

  it('EVT-15 EVT-16 EVT-17 EVT-18 EVT-63 EVT-64 EVT-67 EVT-69 transient frames have no id and are never replayed', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session()
    await bench.send(id, 'think hmm\nsay a text that is longer than one piece of text')
    await stream.hear('turn.ended')
    const transient = stream.frames.filter(({ data }) => data['seq'] === null)
    expect(transient.every((frame) => frame.id === undefined)).toBe(true)
    expect(new Set(transient.map(({ event }) => event))).toEqual(
      new Set(
        profile === 'a' ? ['agent.text', 'agent.thinking'] : ['agent.status', 'agent.text', 'agent.thinking'],
      ),
    )
    const deltas = transient.filter(({ event }) => event === 'agent.text')
    const text = deltas.map(({ data }) => (data['payload'] as { delta: string }).delta).join('')
    expect((await stream.hear('agent.message')).data['payload']).toMatchObject({ text })
    const again = await listen(bench, '/v1/events?last_event_id=0')
    await again.hear('turn.ended')
    expect(again.frames.every((frame) => frame.data['seq'] !== null)).toBe(true)
  })

  it('EVT-21 EVT-22 EVT-23 EVT-24 EVT-26 resumes after a cursor and goes on live, without a gap or a repeat', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'burst 600 10')
    await bench.settle(id)
    const last = bench.emulator.ledger().last_seq
    const byHeader = await listen(bench, '/v1/events', { 'last-event-id': '300' })
    const byQuery = await listen(bench, '/v1/events?last_event_id=0')
    await bench.send(id, 'say and on')
    const ended = await until(() => {
      const { events, last_seq } = bench.emulator.ledger(last)
      return events.some(({ type }) => type === 'turn.ended') ? last_seq : undefined
    })
    for (const [stream, first] of [
      [byHeader, 301],
      [byQuery, 1],
    ] as const) {
      await until(() => (persisted(stream.frames).at(-1)?.id === String(ended) ? true : undefined))
      const seqs = persisted(stream.frames).map((frame) => Number(frame.id))
      expect(seqs).toEqual(Array.from({ length: ended - first + 1 }, (_, index) => first + index))
    }
  })

  it('EVT-27 a cursor that names no event gives nothing of the past, or all of it, as the profile has it', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'say one')
    await bench.settle(id)
    for (const cursor of ['999999', 'abc', '-1']) {
      const stream = await listen(bench, `/v1/events?last_event_id=${cursor}`)
      expect(stream.response.statusCode).toBe(200)
      const marker = bench.emulator.publish(id, 'agent.todos', {})
      await until(() => (persisted(stream.frames).at(-1)?.id === String(marker) ? true : undefined))
      expect(persisted(stream.frames)).toHaveLength(profile === 'a' ? 1 : marker)
      stream.leave()
    }
  })

  it('EVT-04 EVT-05 the stream of one session gives the same frames of that session alone', async () => {
    const bench = await open(profile)
    const one = await bench.session()
    const other = await bench.session()
    const all = await listen(bench)
    const stream = await listen(bench, bench.path('sessionStream', one))
    await bench.send(other, 'say other')
    await bench.settle(other)
    await bench.send(one, 'say one')
    await stream.hear('turn.ended')
    await until(() =>
      all.frames.filter(({ event }) => event === 'turn.ended').length === 2 ? true : undefined,
    )
    expect(stream.text).not.toContain(other)
    const mine = all.frames.filter(({ data }) => JSON.stringify(data).includes(one))
    expect(stream.frames).toEqual(mine)
    await bench.call('DELETE', `/v1/sessions/${one}`)
    await until(() => (stream.closed ? true : undefined))
    expect((await listen(bench, bench.path('sessionStream', one))).response.statusCode).toBe(404)
  })

  it('EVT-34 EVT-35 EVT-36 LIM-33 a replay stops at its limit with a frame that carries from_seq', async () => {
    const bench = await open(profile, { limits: { replayEvents: 100 } })
    const id = await bench.session()
    await bench.send(id, 'burst 150 10')
    await bench.settle(id)
    const last = bench.emulator.ledger().last_seq
    const stream = await listen(bench, '/v1/events?last_event_id=0')
    const stop = await stream.hear(profile === 'a' ? 'replay.truncated' : 'stream.replay_limit')
    expect(persisted(stream.frames)).toHaveLength(100)
    const from =
      profile === 'a' ? (stop.data['payload'] as { from_seq: number }).from_seq : stop.data['from_seq']
    expect([from, stop.id, stop.data['seq']]).toEqual([100, undefined, null])
    if (profile === 'a') await until(() => (stream.closed ? true : undefined))
    const rest = await listen(bench, `/v1/events?last_event_id=${String(from)}`)
    await until(() => (persisted(rest.frames).at(-1)?.id === String(last) ? true : undefined))
    expect(persisted(rest.frames)).toHaveLength(last - 100)
    expect(rest.frames.some(({ event }) => event === stop.event)).toBe(false)
  })

  it('a reader that takes its time over a stopped replay is not pinged after the end', async () => {
    const bench = await open(profile, { limits: { replayEvents: 30 } })
    const id = await bench.session()
    for (let n = 0; n < 31; n++) bench.emulator.publish(id, 'agent.message', { text: 'x'.repeat(400_000) })
    const stream = await listen(bench, '/v1/events?last_event_id=0')
    stream.response.pause()
    await bench.emulator.advance(120_000)
    stream.response.resume()
    await stream.hear(bench.details.stream.stop.name)
    await bench.emulator.advance(60_000)
    expect(persisted(stream.frames)).toHaveLength(30)
    expect(stream.closed).toBe(bench.details.stream.stop.closes)
  })

  it('EVT-28 LIM-30 pings every fifteen seconds', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    await bench.emulator.advance(14_000)
    expect(stream.comments).toEqual([])
    await bench.emulator.advance(31_500)
    await until(() => (stream.comments.length === 3 ? true : undefined))
    expect(stream.text).toContain(': ping\n')
    bench.emulator.faults.set({ stop_pings: true })
    await bench.emulator.advance(60_000)
    expect(stream.comments).toHaveLength(3)
  })

  it('LIM-46 LIM-48 LIM-50 LIM-51 ERR-33 refuses a stream over the cap before it opens, and frees a slot late', async () => {
    const bench = await open(profile, { limits: { streamsPerToken: 1, streamsPerOrganization: 2 } })
    const first = await listen(bench)
    const refused = await bench.call('GET', '/v1/events')
    expect(refused.status).toBe(429)
    expect(refused.body['error']).toMatchObject({
      code: 'rate_limit_exceeded',
      request_id: expect.any(String),
    })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(4)
    first.leave()
    await until(() => (bench.emulator.openStreams() === 0 ? true : undefined))
    expect((await bench.call('GET', '/v1/events')).status).toBe(429)
    await bench.emulator.advance(4500)
    expect((await listen(bench)).response.statusCode).toBe(200)
  })

  it('LIM-47 LIM-49 caps the streams of the whole organization', async () => {
    const bench = await open(profile, { limits: { streamsPerToken: 2, streamsPerOrganization: 2 } })
    await listen(bench)
    await listen(bench)
    bench.token = bench.emulator.mintToken(['sessions:read']).token
    expect((await bench.call('GET', '/v1/events')).status).toBe(429)
  })

  it('LIM-31 drops transient frames, and no others, of a reader that is behind', async () => {
    const bench = await open(profile, { limits: { dropTransientBytes: 65_536, closeStreamBytes: 2 ** 30 } })
    const id = await bench.session()
    const stream = await listen(bench)
    stream.response.pause()
    // More than the sockets between can hold.
    const payload = { text: 'x'.repeat(1_000_000) }
    for (let n = 0; n < 30; n++) bench.emulator.publish(id, 'agent.message', payload)
    await bench.send(id, 'think hmm\nsay hello')
    await bench.settle(id)
    stream.response.resume()
    await stream.hear('turn.ended')
    expect(persisted(stream.frames)).toHaveLength(bench.emulator.ledger().last_seq)
    expect(stream.frames.filter(({ data }) => data['seq'] === null)).toEqual([])
  })

  it('LIM-32 EVT-33 closes the stream of a reader that is eight mebibytes behind', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const stream = await listen(bench)
    stream.response.pause()
    const payload = { text: 'x'.repeat(100_000) }
    let seq = 0
    await until(() => {
      seq = bench.emulator.publish(id, 'agent.message', payload)
      return bench.emulator.openStreams() === 0 || seq > 500 ? true : undefined
    })
    expect(bench.emulator.openStreams()).toBe(0)
    // What the sockets between hold comes on top of the eight mebibytes.
    expect(seq * 100_000).toBeGreaterThan(8 * 1_048_576)
    expect(seq * 100_000).toBeLessThan(24 * 1_048_576)
  })

  it.each([['drop_streams', { drop_streams: true }]])(
    'the fault %s cuts every stream at once',
    async (_name, fault) => {
      const bench = await open(profile)
      const stream = await listen(bench)
      bench.emulator.faults.set(fault)
      await until(() => (stream.closed ? true : undefined))
      expect(bench.emulator.faults.get()).toEqual({})
      expect((await listen(bench)).response.statusCode).toBe(200)
    },
  )

  it('the fault stall_streams holds every byte back until it is lifted', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const stream = await listen(bench)
    bench.emulator.faults.set({ stall_streams: true })
    await bench.send(id, 'say held')
    await bench.settle(id)
    await bench.emulator.advance(60_000)
    expect([stream.frames, stream.comments, stream.closed]).toEqual([[], [], false])
    bench.emulator.faults.set({})
    await stream.hear('turn.ended')
  })

  it('the faults refuse_streams and lose_cursors do what they say', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'say one')
    await bench.settle(id)
    bench.emulator.faults.set({ refuse_streams: 1, lose_cursors: true })
    expect((await bench.call('GET', '/v1/events')).status).toBe(429)
    const stream = await listen(bench, '/v1/events?last_event_id=3')
    const marker = bench.emulator.publish(id, 'agent.todos', {})
    await until(() => (persisted(stream.frames).at(-1)?.id === String(marker) ? true : undefined))
    expect(persisted(stream.frames)).toHaveLength(profile === 'a' ? 1 : marker)
  })

  it('carries names that no version knows, and text that looks like framing, in whole frames', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const stream = await listen(bench)
    bench.emulator.publish(id, 'agent.future', { text: 'a\n\nevent: forged\ndata: {}\r\n\u2028' })
    const frame = await stream.hear('agent.future')
    expect(frame.data['payload']).toMatchObject({ text: 'a\n\nevent: forged\ndata: {}\r\n\u2028' })
    expect(stream.frames).toHaveLength(1)
  })
})
