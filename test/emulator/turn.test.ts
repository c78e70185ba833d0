import { describe, expect, it } from 'vitest'
import { codeOf, open, PROFILES, until } from './support.ts'

describe.each(PROFILES)('input, turns and items, profile %s', (profile) => {
  it('INP-01 INP-06 STA-02 answers a message with 202 and no turn id', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const reply = await bench.send(id, 'say hello')
    expect(reply.status).toBe(202)
    expect(reply.body['queued']).toBe(false)
    expect(reply.text).not.toContain('turn_')
  })

  it('TRN-01 TRN-02 TRN-05 TRN-11 TRN-13 SES-03 a turn runs to completed with ready artifacts and the session to idle', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'say hello')
    const turn = await bench.settle(id)
    expect(turn).toMatchObject({
      object: 'turn',
      id: expect.stringMatching(/^turn_/),
      session_id: id,
      status: 'completed',
      artifacts: 'ready',
      artifacts_skipped: [],
    })
    expect(Number(turn['completed_at'])).toBeGreaterThanOrEqual(Number(turn['started_at']))
    const absent = profile === 'a' ? null : undefined
    expect([turn['error'], turn['subagent_id'], 'error' in turn]).toEqual([absent, absent, profile === 'a'])
    expect((await bench.read(id))['status']).toBe('idle')
    expect((await bench.call('GET', bench.path('turn', id, String(turn['id'])))).body).toEqual(turn)
  })

  it('STA-28 STA-29 TRN-12 artifacts are null while the turn runs, then pending, then ready', async () => {
    const bench = await open(profile, { limits: { collectMs: 60_000 } })
    const id = await bench.session()
    await bench.send(id, 'hang')
    const [running] = await until(async () => {
      const turns = await bench.turns(id)
      return turns.length === 1 ? turns : undefined
    })
    expect(running).toMatchObject({ status: 'working', artifacts: null })
    await bench.steer(id, 'write outputs/a.txt hi')
    await bench.reach(id, 'idle')
    expect((await bench.turns(id))[0]).toMatchObject({ status: 'completed', artifacts: 'pending' })
    await bench.emulator.advance(60_000)
    expect((await bench.turns(id))[0]).toMatchObject({ artifacts: 'ready' })
  })

  it('TRN-06 SES-06 SES-07 a failed turn fails the session, which takes the next message', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'fail out of disk')
    await bench.reach(id, 'failed')
    const [turn] = await bench.turns(id)
    expect(turn?.['status']).toBe('failed')
    expect(turn?.['error']).toEqual(
      profile === 'a'
        ? { code: 'agent_failed', message: 'out of disk' }
        : { reason: 'agent_failed', detail: 'out of disk' },
    )
    await bench.send(id, 'say better')
    await bench.reach(id, 'idle')
  })

  it('STA-13 STA-16 STA-17 ITM-06 a run that cannot start fails the session with an error item and no turn', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    expect((await bench.send(id, 'cannot start no room')).status).toBe(202)
    await bench.reach(id, 'failed')
    expect(await bench.turns(id)).toEqual([])
    const error = (await bench.items(id)).at(-1)
    expect(error).toMatchObject({ type: profile === 'a' ? 'error' : 'failure', content: 'no room' })
    expect(error?.['detail']).toMatchObject({ event: 'agent.error' })
  })

  it('STA-14 TOO-58 TOO-59 a required server that is away keeps the run from starting', async () => {
    const bench = await open(profile)
    const tools = [{ type: 'mcp', name: 'tickets', url: 'https://tickets.invalid/mcp', required: true }]
    const id = await bench.session({ agent: { tools } })
    await bench.send(id, 'say hello')
    await bench.reach(id, 'failed')
    expect(await bench.turns(id)).toEqual([])
    expect(String((await bench.items(id)).at(-1)?.['content'])).toMatch(
      /"tickets" cannot be reached: getaddrinfo/,
    )
  })

  it('EVT-84 EVT-85 EVT-86 ITM-07 an optional server that is away is told and the turn goes on', async () => {
    const bench = await open(profile)
    bench.emulator.faults.set({ unreachable_mcp: ['tickets'] })
    const id = await bench.session({
      agent: { tools: [{ type: 'mcp', name: 'tickets', command: 'tickets' }] },
    })
    await bench.send(id, 'say hello')
    expect((await bench.settle(id))['status']).toBe('completed')
    expect(bench.events(id)).toContain('mcp.unavailable')
    expect((await bench.items(id)).map((item) => item['type'])).toContain('mcp_unavailable')
  })

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
    }
    const sixth = await bench.send(id, 'say 6')
    expect([sixth.status, codeOf(sixth)]).toEqual([profile === 'a' ? 409 : 429, 'queue_full'])
    expect((await bench.read(id))['status']).toBe('working')
    await bench.steer(id, 'say go on')
    await bench.reach(id, 'idle')
    const said = (await bench.items(id)).filter(
      (item) => (item['detail'] as { event: string }).event === 'agent.message',
    )
    expect(said.map((item) => item['content'])).toEqual(['go on', '1', '2', '3', '4', '5'])
    expect(bench.events(id).filter((type) => type === 'message.dequeued')).toHaveLength(5)
  })

  it('INP-03 INP-09 ERR-24 steering changes the running turn and is a conflict without one', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    const early = await bench.steer(id, 'say hello')
    expect([early.status, codeOf(early)]).toEqual([409, 'conflict'])
    expect(await bench.turns(id)).toEqual([])
    await bench.send(id, 'wait 1h\nsay done')
    await until(async () => ((await bench.turns(id)).length === 1 ? true : undefined))
    expect((await bench.steer(id, 'say in between')).status).toBe(202)
    await bench.reach(id, 'idle')
    expect(await bench.turns(id)).toHaveLength(1)
  })

  it('STA-22 TRN-28 a running turn is stopped by its cancel route, with the fourth status', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'call slow {}')
    const [action] = await bench.actions(id)
    const turnId = String(action?.['turn_id'])
    expect((await bench.call('POST', bench.path('cancel', id, turnId))).status).toBe(202)
    const session = await bench.reach(id, 'idle')
    expect(session['required_actions']).toEqual([])
    expect((await bench.turns(id))[0]?.['status']).toBe(profile === 'a' ? 'cancelled' : 'interrupted')
    const again = await bench.call('POST', bench.path('cancel', id, turnId))
    expect([again.status, codeOf(again)]).toEqual([409, 'conflict'])
  })

  it('ITM-01 ITM-05 ITM-10 ITM-13 ITM-14 ITM-15 ITM-16 the transcript tells calls from results by detail.event', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'shell echo hi\nsay {{last}}')
    await bench.settle(id)
    const items = await bench.items(id)
    const seen = items.map((item) => [
      item['type'],
      (item['detail'] as { event: string }).event,
      item['content'],
    ])
    expect(seen).toContainEqual(['message', 'user.message', 'shell echo hi\nsay {{last}}'])
    expect(seen).toContainEqual(['tool_call', 'agent.tool_result', 'hi'])
    expect(seen.filter(([type]) => type === 'tool_call').map(([, event]) => event)).toEqual([
      'agent.tool_call',
      'agent.tool_result',
    ])
    expect(seen.at(-1)).toEqual(['message', 'agent.message', 'hi'])
    for (const item of items)
      expect(item).toMatchObject({ object: 'item', session_id: id, role: expect.any(String) })
    expect(items[0]?.['role']).toBe('user')
  })

  it('ITM-17 LIM-66 pages through a long transcript', async () => {
    const bench = await open(profile)
    const id = await bench.session()
    await bench.send(id, 'burst 250 20')
    await bench.settle(id)
    const seen: unknown[] = []
    for (let query = '?order=asc&limit=100'; ;) {
      const { body } = await bench.call('GET', `/v1/sessions/${id}/items${query}`)
      seen.push(...(body['data'] as { id: string }[]).map((item) => item.id))
      if (body['has_more'] !== true) break
      query = `?order=asc&limit=100&after=${String(body['last_id'])}`
    }
    expect(new Set(seen).size).toBe(251)
    const stray = await bench.call('GET', `/v1/sessions/${id}/items?after=item_0000000000000000ff`)
    expect(stray.body).toMatchObject({ data: [], has_more: false })
  })

  it.each([
    ['an unknown field', { note: 'x' }],
    ['an unknown type', { type: 'input.shout' }],
    ['several events', [{}, {}]],
    ['no text', undefined],
  ])('INP-02 refuses a message with %s', async (_what, wrong) => {
    const bench = await open(profile)
    const id = await bench.session()
    const body = Array.isArray(wrong)
      ? wrong
      : wrong === undefined
        ? { type: bench.message('')['type'] }
        : { ...bench.message('x'), ...wrong }
    const reply = await bench.call('POST', bench.path('message', id), body)
    expect([reply.status, codeOf(reply)]).toEqual([400, 'invalid_request'])
    expect(bench.events(id)).toEqual([])
  })
})
