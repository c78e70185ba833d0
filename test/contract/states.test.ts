import { describe, expect, it } from 'vitest'
import { receive } from '../emulator/receiver.ts'
import { codeOf, open, PROFILES, rowsOf, until, type Bench, type Fields } from '../emulator/support.ts'
import { said, talk } from './transcript.ts'

const stateOf = async (bench: Bench, id: string): Promise<unknown> =>
  ((await bench.read(id))['environment'] as Fields)['state']

const running = (bench: Bench, id: string): Promise<Fields> => until(async () => (await bench.turns(id))[0])

const count = (bench: Bench, id: string, event: string): number =>
  bench.events(id).filter((type) => type === event).length

/** Lets the workspace of a session come to the end of its life. */
async function outlive(bench: Bench, id: string): Promise<void> {
  await bench.send(id, 'hang')
  await bench.emulator.advance(2 * 3_600_000)
  await bench.reach(id, 'failed')
}

describe.each(PROFILES)('the status of a session, profile %s', (profile) => {
  it('STA-01 STA-02 STA-03 STA-04 LIM-09 ERR-26 queues five messages behind a turn and refuses the sixth', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'hang')
    for (let position = 1; position <= 5; position++) {
      const { status, body } = await bench.send(id, `say ${position}`)
      expect(status).toBe(202)
      expect(body).toMatchObject({
        queued: true,
        [profile === 'a' ? 'position' : 'queue_position']: position,
      })
      expect((await bench.read(id))['status']).toBe('working')
    }
    const sixth = await bench.send(id, 'say 6')
    expect([sixth.status, codeOf(sixth)]).toEqual([profile === 'a' ? 409 : 429, 'queue_full'])
    expect((await bench.read(id))['status']).toBe('working')
    await bench.steer(id, 'say go on')
    await bench.reach(id, 'idle')
    expect(await said(bench, id)).toEqual(['go on', '1', '2', '3', '4', '5'])
    expect([count(bench, id, 'message.queued'), count(bench, id, 'message.dequeued')]).toEqual([5, 5])
  })

  it.each([
    ['a function result', 'call f {}', 'function_call'],
    ['an approval', 'approve shell ls', 'approval'],
    ['an answer', 'ask Which colour?', 'question'],
  ])(
    'STA-05 STA-06 STA-07 STA-08 STA-09 STA-23 %s: the session says so, the turn stays working',
    async (_what, text, type) => {
      const bench = await open(profile)
      const id = await bench.session({ input: bench.message(text) })
      const session = await bench.reach(id, 'requires_action')
      expect(rowsOf(session['required_actions']).map((action) => action['type'])).toEqual([type])
      const turn = await running(bench, id)
      expect([turn['status'], turn['artifacts']]).toEqual(['working', null])
    },
  )

  it('STA-13 STA-15 STA-16 STA-17 a run whose workspace was not provisioned fails the session, without a turn', async () => {
    const bench = await open(profile)
    bench.emulator.faults.set({ fail_provisioning: 1 })
    const id = await bench.session()
    expect((await bench.send(id, 'say hello')).status).toBe(202)
    await bench.reach(id, 'failed')
    expect(await bench.turns(id)).toEqual([])
    expect((await bench.items(id)).at(-1)).toMatchObject({
      type: profile === 'a' ? 'error' : 'failure',
      content: 'the workspace was not provisioned',
      detail: { event: 'agent.error' },
    })
    expect((await talk(bench, id, 'say hello'))['status']).toBe('completed')
  })

  it('STA-13 STA-17 the line "cannot start" does the same, for any reason', async () => {
    const bench = await open(profile)
    const id = await bench.session({ input: bench.message('cannot start no room') })
    await bench.reach(id, 'failed')
    expect(await bench.turns(id)).toEqual([])
    expect((await bench.items(id)).at(-1)?.['content']).toBe('no room')
  })

  it('STA-14 a run that lacks a required MCP server does not start', async () => {
    const bench = await open(profile)
    const tools = [{ type: 'mcp', name: 'tickets', url: 'https://tickets.invalid/mcp', required: true }]
    const id = await bench.session({ agent: { tools } })
    expect((await bench.send(id, 'say hello')).status).toBe(202)
    await bench.reach(id, 'failed')
    expect(await bench.turns(id)).toEqual([])
    expect((await bench.items(id)).at(-1)?.['content']).toMatch(/"tickets" cannot be reached: getaddrinfo/)
  })

  it('STA-18 goes from idle to working and back, whichever way a turn ends', async () => {
    const bench = await open(profile, { allowHttpWebhooks: true })
    const receiver = await receive()
    const events = ['session.working', 'session.idle', 'session.failed', 'session.action_required']
    await bench.call('POST', '/v1/webhooks', { url: receiver.url, events })
    const id = await bench.session()
    const went = () => bench.emulator.ledger().deliveries.map(({ event }) => event.replace('session.', ''))
    await bench.send(id, 'call f {}')
    const [action] = await bench.actions(id)
    await bench.answer(id, { call_id: action?.['call_id'], output: '' })
    await bench.reach(id, 'idle')
    await talk(bench, id, 'fail')
    await bench.send(id, 'hang')
    const turn = await until(async () => (await bench.turns(id))[2])
    await bench.call('POST', bench.path('cancel', id, String(turn['id'])))
    await bench.reach(id, 'idle')
    expect(went()).toEqual([
      'working',
      'action_required',
      'working',
      'idle',
      'working',
      'failed',
      'working',
      'idle',
    ])
    expect((await bench.turns(id))[2]?.['status']).toBe(profile === 'a' ? 'cancelled' : 'interrupted')
  })

  it('STA-19 takes a message in every state', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const states: unknown[] = []
    const send = async (text: string): Promise<unknown> => {
      states.push((await bench.read(id))['status'])
      const reply = await bench.send(id, text)
      expect(reply.status).toBe(202)
      return reply.body['queued']
    }
    expect(await send('wait 1h')).toBe(false)
    expect(await send('call f {}')).toBe(true)
    await running(bench, id)
    await bench.emulator.advance(3_600_000)
    const [action] = await bench.actions(id)
    expect(await send('fail')).toBe(true)
    await bench.answer(id, { call_id: action?.['call_id'], output: '' })
    await bench.reach(id, 'failed')
    expect(await send('say hello')).toBe(false)
    await bench.reach(id, 'idle')
    expect(states).toEqual(['idle', 'working', 'requires_action', 'failed'])
  })

  it('STA-20 STA-21 a message starts the workspace, so no client waits for it', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    expect(await stateOf(bench, id)).toBe('unknown')
    expect((await talk(bench, id, 'write a.txt hi'))['status']).toBe('completed')
    expect(await stateOf(bench, id)).toBe('running')
    expect(count(bench, id, 'sandbox.created')).toBe(1)
  })
})

describe.each(PROFILES)('the status of a turn, profile %s', (profile) => {
  it('STA-24 STA-27 a poller learns from the turn that work is over: it ends one way, and only once', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const ends: unknown[] = []
    for (const text of ['say hello', 'fail', 'hang']) {
      await bench.send(id, text)
      const turn = await until(async () => (await bench.turns(id))[ends.length])
      const place = bench.path('turn', id, String(turn['id']))
      if (text === 'hang') await bench.call('POST', bench.path('cancel', id, String(turn['id'])))
      const over = await until(async () => {
        const { body } = await bench.call('GET', place)
        return body['status'] === 'working' || body['artifacts'] === 'pending' ? undefined : body
      })
      expect(over['completed_at']).toEqual(expect.any(Number))
      ends.push(over['status'])
      await bench.emulator.advance(60_000)
      expect((await bench.call('GET', place)).body).toEqual(over)
    }
    expect(ends).toEqual(['completed', 'failed', profile === 'a' ? 'cancelled' : 'interrupted'])
  })

  it('STA-25 STA-26 LIM-25 ART-03 fails when the workspace is reclaimed after two hours; what is published stays', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await talk(bench, id, 'write outputs/a.txt hi')
    await bench.settle(id)
    await bench.send(id, 'hang')
    await until(async () => (await bench.turns(id))[1])
    await bench.emulator.advance(2 * 3_600_000 - 60_000)
    expect((await bench.read(id))['status']).toBe('working')
    await bench.emulator.advance(60_000)
    await bench.reach(id, 'failed')
    expect((await bench.turns(id))[1]?.['status']).toBe('failed')
    expect(bench.emulator.ledger().turns[1]?.error?.code).toBe('workspace_reclaimed')
    expect(rowsOf((await bench.call('GET', bench.path('artifacts', id))).body)).toHaveLength(1)
  })

  it('STA-28 STA-29 its artifacts go from null to pending, and from there to ready, partial or failed', async () => {
    const bench = await open(profile, { limits: { collectMs: 60_000, artifactBytes: 10 } })
    const id = await bench.session()
    const ends: unknown[] = []
    for (const text of ['write outputs/a 5B', 'write outputs/b 20B', 'write outputs/c 5B']) {
      if (ends.length === 2) bench.emulator.faults.set({ fail_artifacts: 1 })
      const states: unknown[] = []
      const look = async () => states.push((await bench.turns(id))[ends.length]?.['artifacts'])
      await bench.send(id, `hang\n${text}`)
      await until(async () => (await bench.turns(id))[ends.length])
      await look()
      await bench.steer(id, 'say go on')
      await bench.reach(id, 'idle')
      await look()
      await bench.emulator.advance(60_000)
      await look()
      expect(states.slice(0, 2)).toEqual([null, 'pending'])
      ends.push(states[2])
    }
    expect(ends).toEqual(['ready', 'partial', 'failed'])
  })
})

describe.each(PROFILES)('the workspace, profile %s', (profile) => {
  it('STA-30 STA-31 STA-32 STA-33 is unknown, running, paused, running again and at last gone, in the words of the profile', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const seen = [await stateOf(bench, id)]
    await talk(bench, id, 'say hello')
    seen.push(await stateOf(bench, id))
    await bench.emulator.advance(6 * 60_000)
    seen.push(await stateOf(bench, id))
    await talk(bench, id, 'say hello')
    seen.push(await stateOf(bench, id))
    await outlive(bench, id)
    seen.push(await stateOf(bench, id))
    await talk(bench, id, 'say hello')
    seen.push(await stateOf(bench, id))
    expect(seen).toEqual(
      profile === 'a'
        ? ['unknown', 'running', 'paused', 'running', 'reclaimed', 'running']
        : ['unknown', 'running', 'asleep', 'running', 'expired', 'running'],
    )
    expect(count(bench, id, 'sandbox.created')).toBe(2)
  })

  it('STA-34 STA-35 STA-36 STA-38 LIM-26 pauses after five idle minutes and wakes on the next input, transcript and files kept', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await talk(bench, id, 'write a.txt kept')
    await bench.settle(id)
    await bench.emulator.advance(290_000)
    expect(bench.events(id)).not.toContain('sandbox.paused')
    await bench.emulator.advance(10_000)
    expect(bench.events(id).at(-1)).toBe('sandbox.paused')
    const items = await bench.items(id)
    await talk(bench, id, 'say two')
    expect(count(bench, id, 'sandbox.resumed')).toBe(1)
    expect(count(bench, id, 'sandbox.created')).toBe(1)
    expect((await bench.items(id)).slice(0, items.length)).toEqual(items)
    const query = `?${bench.details.files.snapshotQuery}=1`
    expect(rowsOf((await bench.call('GET', `/v1/sessions/${id}/files${query}`)).body)).toHaveLength(1)
  })

  it('LIM-26 pauses while the session waits for an answer, not while the agent works', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'wait 20m\ncall f {} & call g {}')
    await running(bench, id)
    await bench.emulator.advance(19 * 60_000)
    expect(bench.events(id)).not.toContain('sandbox.paused')
    await bench.emulator.advance(60_000)
    await bench.actions(id)
    await bench.emulator.advance(6 * 60_000)
    expect(bench.events(id).at(-1)).toBe('sandbox.paused')
    await bench.call('POST', `/v1/sessions/${id}/files/refresh`)
    expect(bench.events(id).at(-1)).toBe('sandbox.resumed')
    await bench.emulator.advance(6 * 60_000)
    expect(bench.events(id).at(-1)).toBe('sandbox.paused')
    const [first] = await bench.actions(id)
    await bench.answer(id, { call_id: first?.['call_id'], output: '' })
    expect(count(bench, id, 'sandbox.resumed')).toBe(2)
    await bench.emulator.advance(6 * 60_000)
    expect(bench.events(id).at(-1)).toBe('sandbox.paused')
  })

  it('STA-37 time spent paused is not taken off its two hours', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    for (let hour = 0; hour < 5; hour++) {
      await talk(bench, id, 'say hello')
      await bench.emulator.advance(3_600_000)
    }
    expect(count(bench, id, 'sandbox.created')).toBe(1)
    expect(count(bench, id, 'sandbox.paused')).toBe(5)
    // Five times five minutes and a little are used up.
    await bench.send(id, 'hang')
    await until(async () => (await bench.turns(id))[5])
    await bench.emulator.advance(94 * 60_000)
    expect((await bench.read(id))['status']).toBe('working')
    await bench.emulator.advance(2 * 60_000)
    await bench.reach(id, 'failed')
  })

  it('LIM-08 a paused sandbox holds its slot', async () => {
    const bench = await open(profile, { limits: { sessions: 1 } })
    const id = await bench.session()
    await talk(bench, id, 'say hello')
    await bench.emulator.advance(600_000)
    expect(bench.events(id).at(-1)).toBe('sandbox.paused')
    expect((await bench.call('POST', '/v1/sessions', {})).status).toBe(429)
  })

  it('EVT-61 one that is lost during a pause is reported and built anew, empty', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await talk(bench, id, 'write a.txt lost')
    await bench.emulator.advance(6 * 60_000)
    bench.emulator.faults.set({ fail_recoveries: 1 })
    expect((await talk(bench, id, 'say hello'))['status']).toBe('completed')
    const lost = bench.events(id).indexOf('workspace.recovery_failed')
    expect(bench.events(id)[lost + 1]).toBe('sandbox.created')
    const query = `?${bench.details.files.snapshotQuery}=1`
    expect(rowsOf((await bench.call('GET', `/v1/sessions/${id}/files${query}`)).body)).toEqual([])
  })
})

describe.each(PROFILES)('webhook deliveries, profile %s', (profile) => {
  /** A subscription to new sessions at a receiver that gives this answer. */
  async function subscribed(answer: number | null) {
    const bench = await open(profile, { allowHttpWebhooks: true })
    const receiver = await receive()
    receiver.answer = answer
    await bench.call('POST', '/v1/webhooks', { url: receiver.url, events: ['session.created'] })
    const active = async () => rowsOf((await bench.call('GET', '/v1/webhooks')).body)[0]?.['active']
    return { bench, receiver, active }
  }

  it('STA-40 a non-2xx answer makes the service retry a pending delivery', async () => {
    const { bench, receiver } = await subscribed(500)
    await bench.session()
    await until(() => (bench.emulator.ledger().deliveries[0]?.attempts.length === 1 ? true : undefined))
    expect(bench.emulator.ledger().deliveries[0]?.status).toBe('pending')
    receiver.answer = 204
    await bench.emulator.advance(5000)
    await until(() => (bench.emulator.ledger().deliveries[0]?.status === 'delivered' ? true : undefined))
    expect(receiver.received[1]?.raw).toBe(receiver.received[0]?.raw)
  })

  it('STA-41 no answer makes the service retry a pending delivery', async () => {
    const { bench, receiver } = await subscribed(null)
    await bench.session()
    await until(() => (receiver.received.length === 1 ? true : undefined))
    receiver.answer = 200
    await bench.emulator.advance(10_000)
    await until(() => (bench.emulator.ledger().deliveries[0]?.attempts.length === 1 ? true : undefined))
    await bench.emulator.advance(5000)
    await until(() => (bench.emulator.ledger().deliveries[0]?.status === 'delivered' ? true : undefined))
    const [first, second] = bench.emulator.ledger().deliveries[0]?.attempts ?? []
    expect([first?.error, second?.status]).toEqual(['no answer in time', 200])
  })

  it('STA-39 STA-42 STA-43 one that fails to the end is dead, with the reason, and at last the subscription inactive', async () => {
    const { bench, active } = await subscribed(500)
    // One dead delivery is enough, or three in a row, as the profile has it.
    const deaths = profile === 'a' ? 1 : 3
    for (let n = 1; n <= deaths; n++) {
      expect(await active()).toBe(true)
      await bench.session()
      await until(() => bench.emulator.ledger().deliveries[n - 1]?.attempts[0])
      await bench.emulator.advance(10 * 3_600_000)
      expect(bench.emulator.ledger().deliveries[n - 1]).toMatchObject({
        status: 'dead',
        reason: '6 attempts failed, the last: status 500',
      })
    }
    expect(await active()).toBe(false)
    await bench.session()
    expect(bench.emulator.ledger().deliveries).toHaveLength(deaths)
  })
})
