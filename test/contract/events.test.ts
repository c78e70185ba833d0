import { describe, expect, it } from 'vitest'
import { PERSISTED_EVENTS } from '../../src/emulator/event.ts'
import { descriptionOf } from '../emulator/described.ts'
import { listen, type Frame, type Listener } from '../emulator/listener.ts'
import { codeOf, open, PROFILES, until, type Bench, type Fields } from '../emulator/support.ts'

const persisted = (frames: readonly Frame[]): Frame[] => frames.filter(({ id }) => id !== undefined)
const transient = (frames: readonly Frame[]): Frame[] => frames.filter(({ id }) => id === undefined)
const payloadOf = (frame: Frame): Fields => frame.data['payload'] as Fields

/** The frame with this name that comes next, a frame's place in the list being where to look on from. */
function hearAfter(stream: Listener, event: string, from: number): Promise<Frame> {
  return until(() => stream.frames.slice(from).find((frame) => frame.event === event))
}

/** Waits until the session waits for something of this type, and does what the person does. */
async function resolveNext(bench: Bench, id: string, type: string, verdict: Verdict): Promise<void> {
  const action = await until(async () => {
    const entries = (await bench.read(id))['required_actions'] as Fields[]
    return entries.find((entry) => entry['type'] === type)
  })
  bench.emulator.resolveAction(String(action['call_id']), verdict)
}
type Verdict = { approved: boolean } | { answer: string }

/** A session whose turn ended, and how many events there are. */
async function past(bench: Bench, text = 'say one'): Promise<{ id: string; last: number }> {
  const id = await bench.session()
  await bench.send(id, text)
  await bench.settle(id)
  return { id, last: bench.emulator.ledger().last_seq }
}

describe.each(PROFILES)('event streams, profile %s', (profile) => {
  it('EVT-01 EVT-03 EVT-08 EVT-09 EVT-10 EVT-11 EVT-12 EVT-13 EVT-14 EVT-25 gives live frames of every session, later ones too', async () => {
    const bench = await open(profile)
    await past(bench, 'say too early')
    const stream = await listen(bench)
    expect(stream.response.headers['content-type']).toBe('text/event-stream')
    const id = await bench.session()
    await bench.send(id, 'say hello')
    await stream.hear('turn.ended')
    for (const frame of persisted(stream.frames)) {
      expect(frame.data).toMatchObject({
        type: frame.event,
        seq: Number(frame.id),
        internal_type: expect.any(String),
        payload: expect.any(Object),
      })
      expect(frame.data['internal_type']).not.toBe(frame.event)
      expect(JSON.stringify(frame.data)).toContain(id)
    }
    expect(stream.text).not.toContain('too early')
    const names = persisted(stream.frames).map(({ event }) => event)
    expect(names).toEqual(['user.message', 'sandbox.created', 'turn.started', 'agent.message', 'turn.ended'])
  })

  it('EVT-02 a stream shows the sessions of its own organization alone, whenever they are created', async () => {
    const bench = await open(profile)
    const other = await open(profile)
    const stream = await listen(bench)
    const foreign = await other.session()
    await other.send(foreign, 'say not yours')
    await other.settle(foreign)
    const id = await bench.session()
    await bench.send(id, 'say mine')
    await stream.hear('turn.ended')
    expect(stream.text).not.toContain(foreign)
    expect((await listen(bench, bench.path('sessionStream', foreign))).response.statusCode).toBe(404)
  })

  it('EVT-04 EVT-05 the stream of one session gives the same frames of that session alone', async () => {
    const bench = await open(profile)
    const one = await bench.session()
    const other = await bench.session()
    const path = profile === 'a' ? `/v1/sessions/${one}/events` : `/v1/events/sessions/${one}`
    expect(bench.path('sessionStream', one)).toBe(path)
    const all = await listen(bench)
    const stream = await listen(bench, path)
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
    expect((await listen(bench, path)).response.statusCode).toBe(404)
  })

  it('EVT-06 EVT-07 both streams need sessions:read', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const places = ['/v1/events', bench.path('sessionStream', id)]
    bench.token = bench.emulator.mintToken(['sessions:write', 'tools:respond', 'artifacts:read']).token
    for (const path of places) {
      const reply = await bench.call('GET', path)
      expect([path, reply.status, codeOf(reply)]).toEqual([path, 403, 'permission_denied'])
    }
    bench.token = bench.emulator.mintToken(['sessions:read']).token
    for (const path of places) expect((await listen(bench, path)).response.statusCode).toBe(200)
  })

  it('EVT-15 EVT-16 EVT-17 EVT-18 EVT-63 EVT-64 EVT-67 EVT-68 EVT-69 transient frames have no id, move no cursor and are never replayed', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session()
    await bench.send(id, 'think hmm\nsay a text that is longer than one piece of text')
    await stream.hear('turn.ended')
    for (const frame of transient(stream.frames)) expect(frame.data['seq']).toBe(null)
    const names = transient(stream.frames).map(({ event }) => event)
    expect(names).toContain('agent.text')
    expect(names).toContain('agent.thinking')
    const deltas = transient(stream.frames).filter(({ event }) => event === 'agent.text')
    const text = deltas.map((frame) => payloadOf(frame)['delta']).join('')
    const message = await stream.hear('agent.message')
    expect([payloadOf(message)['text'], message.id]).toEqual([text, String(message.data['seq'])])
    // The numbers run on as if the transient ones had not been there.
    const seqs = persisted(stream.frames).map(({ data }) => data['seq'])
    expect(seqs).toEqual(seqs.map((_, index) => index + 1))
    const again = await listen(bench, '/v1/events?last_event_id=0')
    await again.hear('turn.ended')
    expect(transient(again.frames)).toEqual([])
    expect(persisted(again.frames)).toEqual(persisted(stream.frames))
  })

  it('EVT-19 EVT-20 progress is transient; the other transient types are up to the profile', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session()
    await bench.send(id, 'think hmm\nshell ls\nsay hello')
    await stream.hear('turn.ended')
    const names = new Set(transient(stream.frames).map(({ event }) => event))
    expect(names).toContain('agent.progress')
    expect([...names].toSorted()).toEqual(
      profile === 'a'
        ? ['agent.progress', 'agent.text', 'agent.thinking']
        : ['agent.progress', 'agent.status', 'agent.text', 'agent.thinking'],
    )
  })

  it('EVT-21 EVT-22 EVT-23 EVT-24 EVT-26 resumes after a cursor and goes on live, without a gap or a repeat', async () => {
    const bench = await open(profile)
    const { id, last } = await past(bench, 'burst 600 10')
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

  it('EVT-27 a cursor names a row; one that names none gives nothing of the past, or all of it, as the profile has it', async () => {
    const bench = await open(profile)
    const { id, last } = await past(bench)
    const exact = await listen(bench, `/v1/events?last_event_id=${last - 1}`)
    await until(() => (persisted(exact.frames).length === 1 ? true : undefined))
    expect(exact.frames[0]?.id).toBe(String(last))
    for (const cursor of ['999999', 'abc', '-1']) {
      const stream = await listen(bench, `/v1/events?last_event_id=${cursor}`)
      expect(stream.response.statusCode).toBe(200)
      const marker = bench.emulator.publish(id, 'agent.todos', {})
      await until(() => (persisted(stream.frames).at(-1)?.id === String(marker) ? true : undefined))
      expect(persisted(stream.frames)).toHaveLength(profile === 'a' ? 1 : marker)
      stream.leave()
    }
  })

  it('EVT-28 the ping is a comment, which is no frame', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    await bench.emulator.advance(15_100)
    await until(() => (stream.comments.length === 1 ? true : undefined))
    expect([stream.comments, stream.frames]).toEqual([['ping'], []])
    expect(stream.text).toContain(': ping\n')
  })

  it('EVT-29 EVT-30 EVT-31 EVT-32 a retry hint comes first: longer than a slot takes to be freed, or shorter, as the profile has it', async () => {
    const bench = await open(profile, { limits: { streamsPerToken: 1 } })
    const stream = await listen(bench)
    expect(stream.text.startsWith(`retry: ${profile === 'a' ? 8000 : 2000}\n\n`)).toBe(true)
    stream.leave()
    await until(() => (bench.emulator.openStreams() === 0 ? true : undefined))
    // A client that does not wait is refused; one that waits as hinted is accepted where the hint is long enough.
    expect((await bench.call('GET', '/v1/events')).status).toBe(429)
    await bench.emulator.advance(stream.retry ?? 0)
    const again = await listen(bench)
    expect(again.response.statusCode).toBe(profile === 'a' ? 200 : 429)
  })

  it('EVT-33 a reader that was closed for its backlog loses nothing when it comes back with its last seq', async () => {
    const bench = await open(profile, { limits: { closeStreamBytes: 1_000_000 } })
    const id = await bench.session()
    const stream = await listen(bench)
    stream.response.pause()
    const payload = { text: 'x'.repeat(100_000) }
    await until(() => {
      bench.emulator.publish(id, 'agent.message', payload)
      return bench.emulator.openStreams() === 0 ? true : undefined
    })
    stream.response.resume()
    await until(() => (stream.closed ? true : undefined))
    const { last_seq: last } = bench.emulator.ledger()
    const cursor = persisted(stream.frames).at(-1)?.id ?? '0'
    expect(Number(cursor)).toBeLessThan(last)
    const again = await listen(bench, '/v1/events', { 'last-event-id': cursor })
    await until(() => (persisted(again.frames).at(-1)?.id === String(last) ? true : undefined))
    expect(again.frames[0]?.id).toBe(String(Number(cursor) + 1))
  })

  it('EVT-34 EVT-35 EVT-36 a replay that stops at its limit says so in a frame that carries from_seq', async () => {
    const bench = await open(profile, { limits: { replayEvents: 100 } })
    const { last } = await past(bench, 'burst 150 10')
    const stream = await listen(bench, '/v1/events?last_event_id=0')
    const stop = await stream.hear(profile === 'a' ? 'replay.truncated' : 'stream.replay_limit')
    expect(persisted(stream.frames)).toHaveLength(100)
    const from = profile === 'a' ? payloadOf(stop)['from_seq'] : stop.data['from_seq']
    expect([from, stop.id, stop.data['seq']]).toEqual([100, undefined, null])
    if (profile === 'a') await until(() => (stream.closed ? true : undefined))
    const rest = await listen(bench, `/v1/events?last_event_id=${String(from)}`)
    await until(() => (persisted(rest.frames).at(-1)?.id === String(last) ? true : undefined))
    expect(persisted(rest.frames)).toHaveLength(last - 100)
    expect(rest.frames.some(({ event }) => event === stop.event)).toBe(false)
  })

  it('EVT-34 a reader that takes its time over a stopped replay is not pinged after the end', async () => {
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

  it('EVT-37 a reader that subscribes after it sent has missed the opening frames', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const early = await listen(bench)
    await bench.send(id, 'hang')
    await early.hear('turn.started')
    const late = await listen(bench)
    const [turn] = await bench.turns(id)
    await bench.call('POST', bench.path('cancel', id, String(turn?.['id'])))
    await late.hear('turn.ended')
    expect(late.frames.map(({ event }) => event)).not.toContain('turn.started')
    expect(early.frames.map(({ event }) => event)).toContain('user.message')
  })

  it('EVT-38 EVT-39 EVT-40 EVT-41 EVT-42 EVT-44 EVT-46 EVT-49 EVT-50 EVT-51 EVT-52 EVT-53 EVT-54 EVT-55 EVT-60 EVT-62 one turn of an agent makes these events', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session({ agent: { tools: [{ type: 'function', name: 'f' }] } })
    const lines = ['shell ls', 'write outputs/a.txt hi', 'call f {}', 'approve shell ls', 'ask Why?']
    await bench.send(id, [...lines, 'preview 8080', 'say hello', 'fail out of disk'].join('\n'))
    const [call] = await bench.actions(id)
    await bench.answer(id, { call_id: call?.['call_id'], output: '' })
    await resolveNext(bench, id, 'approval', { approved: true })
    await resolveNext(bench, id, 'question', { answer: 'so' })
    await stream.hear('artifact.created')
    const heard = new Set(stream.frames.map(({ event }) => event))
    for (const name of [
      'turn.started',
      'turn.ended',
      'agent.message',
      'agent.tool_call',
      'agent.tool_result',
      'agent.error',
      'user.message',
      'file.changed',
      'approval.requested',
      'approval.resolved',
      'question.asked',
      'question.answered',
      'tool.required',
      'tool.resolved',
      'preview.ready',
      'artifact.created',
    ])
      expect(heard).toContain(name)
  })

  it('EVT-47 EVT-48 a waiting message makes events when it is queued and when its turn comes', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session()
    await bench.send(id, 'wait 1m')
    await stream.hear('turn.started')
    await bench.send(id, 'say second')
    await stream.hear('message.queued')
    await bench.emulator.advance(60_000)
    await stream.hear('agent.message')
    const names = stream.frames.map(({ event }) => event)
    expect(names.filter((name) => name.startsWith('message.'))).toEqual([
      'message.queued',
      'message.dequeued',
    ])
  })

  it('EVT-57 EVT-58 EVT-59 a sandbox makes events when it is created, paused and resumed', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const { id } = await past(bench)
    await stream.hear('sandbox.created')
    await bench.emulator.advance(300_000)
    await stream.hear('sandbox.paused')
    await bench.send(id, 'say again')
    await stream.hear('sandbox.resumed')
    const names = stream.frames.map(({ event }) => event).filter((name) => name.startsWith('sandbox.'))
    expect(names).toEqual(['sandbox.created', 'sandbox.paused', 'sandbox.resumed'])
  })

  it('EVT-43 EVT-45 EVT-61 compactions, todos and failed recoveries are frames like the others', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session()
    for (const name of ['agent.compaction', 'agent.todos', 'workspace.recovery_failed']) {
      const seq = bench.emulator.publish(id, name, { some: 'payload' })
      const frame = await stream.hear(name)
      expect([frame.id, payloadOf(frame)['some']]).toEqual([String(seq), 'payload'])
      expect(PERSISTED_EVENTS).toContain(name)
    }
  })

  it('EVT-65 EVT-66 turn.ended only shows that the run is over; the turn that it names has the outcome', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session()
    const ends: Frame[] = []
    for (const text of ['say hello', 'fail out of disk']) {
      const from = stream.frames.length
      await bench.send(id, text)
      ends.push(await hearAfter(stream, 'turn.ended', from))
    }
    const [good, bad] = ends
    if (good === undefined || bad === undefined) throw new Error('two turns ended')
    const turns = await bench.turns(id)
    for (const [index, end] of ends.entries())
      expect(JSON.stringify(end.data)).toContain(String(turns[index]?.['id']))
    expect(turns.map(({ status }) => status)).toEqual(['completed', 'failed'])
    expect(Object.keys(payloadOf(good))).toEqual(Object.keys(payloadOf(bad)))
    for (const end of ends) expect(JSON.stringify(end.data)).not.toMatch(/completed|failed|out of disk/)
  })

  it('EVT-70 EVT-71 EVT-72 EVT-73 a tool call has its name and arguments', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session()
    await bench.send(id, 'call lookup_order {"order_id":"42"}')
    const args = { order_id: '42' }
    expect(payloadOf(await stream.hear('agent.tool_call'))).toMatchObject({ toolName: 'lookup_order', args })
    expect(payloadOf(await stream.hear('tool.required'))).toMatchObject({
      name: 'lookup_order',
      arguments: args,
    })
  })

  it('EVT-56 EVT-74 EVT-75 EVT-84 EVT-85 EVT-86 an unreachable optional MCP server makes an event, and the turn continues without it', async () => {
    const bench = await open(profile)
    bench.emulator.faults.set({ unreachable_mcp: ['tickets'] })
    const stream = await listen(bench)
    const id = await bench.session({
      agent: { tools: [{ type: 'mcp', name: 'tickets', url: 'https://mcp.example.com' }] },
    })
    await bench.send(id, 'say hello')
    expect(payloadOf(await stream.hear('mcp.unavailable'))).toMatchObject({
      server: 'tickets',
      reason: expect.stringMatching(/./),
    })
    expect((await bench.settle(id))['status']).toBe('completed')
    const items = await bench.items(id)
    const item = items.find(({ type }) => type === 'mcp_unavailable')
    expect(item?.['detail']).toMatchObject({ event: 'mcp.unavailable' })
    expect(items.map(({ content }) => content)).toContain('hello')
  })

  it('EVT-76 EVT-77 EVT-78 EVT-79 EVT-80 EVT-81 EVT-82 EVT-87 a blocked tool call makes an event with its code and the sentence for the agent', async () => {
    const cases = [
      ['denied_read_only', { approval_mode: 'read_only' }],
      ['denied_by_rule', { permission_rules: [{ decision: 'deny', tool: 'shell' }] }],
    ] as const
    const bench = await open(profile)
    for (const [code, agent] of cases) {
      const stream = await listen(bench)
      const id = await bench.session({ agent })
      await bench.send(id, 'shell rm -rf build\nsay on')
      const payload = payloadOf(await stream.hear('approval.resolved'))
      expect(payload).toMatchObject({
        approved: false,
        toolCallId: expect.stringMatching(/./),
        name: 'shell',
        code,
      })
      expect(
        Object.values(payload).some((value) => /shell/.test(String(value)) && String(value).includes(' ')),
      ).toBe(true)
      await stream.hear('agent.message')
      expect((await bench.settle(id))['status']).toBe('completed')
      stream.leave()
    }
  })

  it('EVT-76 EVT-79 what a person decides has no code, or a null one, as the profile has it', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session()
    await bench.send(id, 'approve shell ls')
    await resolveNext(bench, id, 'approval', { approved: true })
    const payload = payloadOf(await stream.hear('approval.resolved'))
    expect(payload).toMatchObject({ approved: true, name: 'shell' })
    expect('code' in payload ? payload['code'] : 'absent').toBe(profile === 'a' ? 'absent' : null)
  })

  it('EVT-83 the other payloads are spelled as the examples of the description are', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session()
    await bench.send(id, 'write outputs/a.txt hi\nask Why?')
    await resolveNext(bench, id, 'question', { answer: 'so' })
    await stream.hear('artifact.created')
    const { document } = await descriptionOf(profile)
    const { paths } = document as { paths: Record<string, { get: { responses: Fields } }> }
    const response = paths['/v1/events']?.get.responses['200'] as { content: Record<string, Fields> }
    const examples = response.content['text/event-stream']?.['examples'] as Record<string, { value: Fields }>
    for (const frame of persisted(stream.frames)) {
      const example = examples[frame.event]?.value
      expect([frame.event, Object.keys(frame.data)]).toEqual([frame.event, Object.keys(example ?? {})])
      const known = Object.keys(example?.['payload'] ?? {})
      expect([frame.event, Object.keys(payloadOf(frame))]).toEqual([frame.event, known])
    }
    const changed = payloadOf(await stream.hear('file.changed'))
    expect(changed[profile === 'a' ? 'size_bytes' : 'sizeBytes']).toBe(2)
  })

  it('EVT-88 publishing an artifact makes an event, with the id for its download', async () => {
    const bench = await open(profile)
    const stream = await listen(bench)
    const id = await bench.session()
    await bench.send(id, 'write outputs/a.txt hi')
    const payload = payloadOf(await stream.hear('artifact.created'))
    const artifactId = String(payload[profile === 'a' ? 'artifact_id' : 'artifactId'])
    const content = await bench.call('GET', `/v1/sessions/${id}/artifacts/${artifactId}/content`)
    expect([content.status, content.text]).toEqual([200, 'hi'])
  })

  it('carries text that looks like framing in whole frames', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const stream = await listen(bench)
    const text = 'a\n\nevent: forged\ndata: {}\r\n\u2028'
    bench.emulator.publish(id, 'agent.message', { text })
    expect(payloadOf(await stream.hear('agent.message'))['text']).toBe(text)
    expect(stream.frames).toHaveLength(1)
  })
})
