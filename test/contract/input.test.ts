import { describe, expect, it } from 'vitest'
import { listen } from '../emulator/listener.ts'
import { receive } from '../emulator/receiver.ts'
import { codeOf, open, PROFILES, until } from '../emulator/support.ts'
import { said, talk } from './transcript.ts'

describe.each(PROFILES)('input, profile %s', (profile) => {
  it('INP-01 INP-04 INP-05 INP-06 is sent to the path of the profile and answered with 202, in its words, with no turn id', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const elsewhere = profile === 'a' ? 'messages' : 'input'
    expect((await bench.call('POST', `/v1/sessions/${id}/${elsewhere}`, bench.message('x'))).status).toBe(404)
    const reply = await bench.send(id, 'say hello')
    const at = expect.any(Number) as number
    const own = { object: 'input', id: expect.any(String) as string, created_at: at, position: null }
    const theirs = { object: 'accepted', session_id: id, accepted_at: at }
    expect([reply.status, reply.body]).toEqual([202, { ...(profile === 'a' ? own : theirs), queued: false }])
    expect(reply.text).not.toContain('turn')
    expect((await bench.send('none', 'say hello')).status).toBe(404)
  })

  it.each([
    ['an unknown field', { note: 'x' }],
    ['an unknown type', { type: 'input.shout' }],
    ['several events', [{}, {}]],
    ['no text', undefined],
  ])('INP-02 refuses %s', async (_what, wrong) => {
    const bench = await open(profile)
    const id = await bench.session()
    const plain = bench.message('x')
    const body = Array.isArray(wrong)
      ? [plain, plain]
      : wrong === undefined
        ? { type: plain['type'] }
        : { ...plain, ...wrong }
    const reply = await bench.call('POST', bench.path('message', id), body)
    expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
    expect(bench.events(id)).toEqual([])
  })

  it('INP-02 takes one event a request: each message has its own turn, in order', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    for (const text of ['say one', 'say two', 'say three']) await bench.send(id, text)
    await until(async () => ((await bench.turns(id)).length === 3 ? true : undefined))
    await bench.reach(id, 'idle')
    expect(await said(bench, id)).toEqual(['one', 'two', 'three'])
  })

  it('INP-03 steers the running turn: what it says comes before the rest', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'wait 1h\nsay done')
    await until(async () => (await bench.turns(id))[0])
    const reply = await bench.steer(id, 'say in between')
    expect([reply.status, reply.body['queued']]).toEqual([202, false])
    await bench.reach(id, 'idle')
    expect(await said(bench, id)).toEqual(['in between', 'done'])
    expect(await bench.turns(id)).toHaveLength(1)
  })

  it('INP-09 ERR-24 steering is a conflict with nothing running, and starts no turn', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const fresh = await bench.steer(id, 'say hello')
    await talk(bench, id, 'say hello')
    const over = await bench.steer(id, 'say more')
    for (const reply of [fresh, over]) expect([reply.status, codeOf(reply)]).toEqual([409, 'conflict'])
    await bench.emulator.advance(60_000)
    expect(await bench.turns(id)).toHaveLength(1)
    expect(await said(bench, id)).toEqual(['hello'])
  })

  it('INP-07 INP-08 the id of the turn comes by stream, by webhook and in the turn list', async () => {
    const bench = await open(profile, { allowHttpWebhooks: true })
    const receiver = await receive()
    await bench.call('POST', '/v1/webhooks', { url: receiver.url, events: ['turn.completed'] })
    const stream = await listen(bench)
    const id = await bench.session()
    await bench.send(id, 'say hello')
    const [turn] = await until(async () => {
      const turns = await bench.turns(id)
      return turns[0]?.['status'] === 'completed' ? turns : undefined
    })
    const started = await stream.hear('turn.started')
    const [received] = await until(() => (receiver.received.length === 1 ? receiver.received : undefined))
    for (const source of [JSON.stringify(started.data), received?.raw]) {
      expect(source).toContain(String(turn?.['id']))
    }
  })
})
