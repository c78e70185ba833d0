import { describe, expect, it } from 'vitest'
import { codeOf, messageOf, open, PROFILES, until, type Bench, type Fields } from '../emulator/support.ts'
import { outputs, payloads, said } from './transcript.ts'

async function waiting(
  bench: Bench,
  text: string,
  tools: unknown[] = [],
): Promise<{ id: string; calls: string[]; actions: Fields[] }> {
  const id = await bench.session({ agent: { tools } })
  await bench.send(id, text)
  const actions = await bench.actions(id)
  return { id, calls: actions.map((action) => String(action['call_id'])), actions }
}

describe.each(PROFILES)('required actions, profile %s', (profile) => {
  it('STA-08 STA-09 ACT-01 ACT-04 ACT-05 ACT-06 ACT-07 ACT-08 ACT-09 two calls at once wait for both answers', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'call lookup {"id":"42"} & call stock [1]\nsay {{last}}')
    const session = await bench.read(id)
    expect(session['required_actions']).toEqual([
      {
        type: 'function_call',
        turn_id: expect.stringMatching(/^turn_/),
        call_id: calls[0],
        name: 'lookup',
        arguments: { id: '42' },
        created_at: expect.any(Number),
        expires_at: null,
      },
      expect.objectContaining({ name: 'stock', arguments: [1] }),
    ])
    expect((await bench.turns(id))[0]?.['status']).toBe('working')
    await bench.answer(id, { call_id: calls[1], output: 'seven' })
    expect((await bench.read(id))['status']).toBe('requires_action')
    await bench.answer(id, { call_id: calls[0], output: 'shipped' })
    await bench.reach(id, 'idle')
    const items = await bench.items(id)
    expect(items.at(-1)?.['content']).toBe('shipped\nseven')
    expect(bench.events(id).filter((type) => type === 'tool.required')).toHaveLength(2)
    expect(bench.events(id).filter((type) => type === 'tool.resolved')).toHaveLength(2)
  })

  it('ACT-07 gives the arguments of a function as the agent wrote them, whatever their JSON type', async () => {
    const bench = await open(profile)
    const given = ['{"a":{"b":[1,null]}}', '[1,"two"]', '"text"', '3.5', 'true', 'null']
    const { actions } = await waiting(bench, given.map((json) => `call f ${json}`).join(' & '))
    expect(actions.map((action) => action['arguments'])).toEqual(
      given.map((json) => JSON.parse(json) as unknown),
    )
  })

  it('ACT-02 ACT-10 an approval shows what is to be approved, in the words of the profile', async () => {
    const bench = await open(profile)
    const { actions } = await waiting(bench, 'approve shell rm -rf build')
    const shown = { line: 'shell rm -rf build' }
    const common = { type: 'approval', call_id: expect.any(String), turn_id: expect.stringMatching(/^turn_/) }
    const times = { created_at: expect.any(Number), expires_at: null }
    const open_ =
      profile === 'a' ? { name: 'shell', arguments: shown } : { tool: { name: 'shell', input: shown } }
    expect(actions).toEqual([{ ...common, ...open_, ...times }])
  })

  it('ACT-03 ACT-11 a question shows what is asked, in the words of the profile', async () => {
    const bench = await open(profile)
    const { actions } = await waiting(bench, 'ask Which colour?')
    const common = { type: 'question', call_id: expect.any(String), turn_id: expect.stringMatching(/^turn_/) }
    const times = { created_at: expect.any(Number), expires_at: null }
    const open_ = profile === 'a' ? { question: 'Which colour?' } : { prompt: 'Which colour?', options: [] }
    expect(actions).toEqual([{ ...common, ...open_, ...times }])
  })
})

describe.each(PROFILES)('answering a function call, profile %s', (profile) => {
  it('ACT-17 is done at the path of the profile', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'call f {}')
    const other = profile === 'a' ? 'actions/respond' : 'answers'
    const body = { call_id: calls[0], output: 'x' }
    expect((await bench.call('POST', `/v1/sessions/${id}/${other}`, body)).status).toBe(404)
    expect((await bench.answer(id, body)).status).toBe(200)
  })

  it('ACT-13 ACT-14 takes an output that is a string, and gives it to the agent byte for byte', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'call f {}\nsay {{last}}')
    const structured = await bench.answer(id, { call_id: calls[0], output: { state: 'shipped' } })
    expect([structured.status, codeOf(structured)]).toEqual([400, 'invalid_request'])
    const output = ' {"state": "shipped"}\n'
    await bench.answer(id, { call_id: calls[0], output })
    await bench.reach(id, 'idle')
    expect([await outputs(bench, id), await said(bench, id)]).toEqual([[output], [output]])
  })

  it('ACT-15 ACT-16 takes an error, which the model reads as it is: so it is never an exception', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'call f {}\nsay {{last}}')
    await bench.answer(id, { call_id: calls[0], error: 'The tool could not complete this request.' })
    await bench.reach(id, 'idle')
    const [result] = await payloads(bench, id, 'agent.tool_result')
    expect(result).toMatchObject({
      output: 'The tool could not complete this request.',
      [profile === 'a' ? 'is_error' : 'isError']: true,
    })
    expect(await said(bench, id)).toEqual(['The tool could not complete this request.'])
    const doc = await bench.call('GET', '/v1/openapi.json')
    expect(doc.text).toContain('A fixed sentence: the model reads it.')
  })

  it('ACT-12 ACT-18 ACT-20 reports the outcome of an answer, and of one that comes twice', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'call f {}\nhang')
    const first = await bench.answer(id, { call_id: calls[0], error: 'It failed.' })
    expect(first.status).toBe(200)
    expect(first.body['outcome']).toBe(profile === 'a' ? 'delivered' : 'accepted')
    const second = await bench.answer(id, { call_id: calls[0], output: 'late' })
    expect(second.body['outcome']).toBe(profile === 'a' ? 'already_answered' : 'duplicate')
    const { answers, actions } = bench.emulator.ledger()
    expect(answers.map(({ output, error }) => [output, error])).toEqual([
      [null, 'It failed.'],
      ['late', null],
    ])
    expect(actions[0]?.resolution).toEqual({ kind: 'error', text: 'It failed.' })
  })

  it('ACT-20 ACT-24 ACT-25 TOO-22 a call without an answer in time fails and the turn continues', async () => {
    const bench = await open(profile)
    const tools = [{ type: 'function', name: 'f', timeout_seconds: 60 }]
    const { id, calls } = await waiting(bench, 'call f {}\nsay after: {{last}}', tools)
    const [action] = await bench.actions(id)
    expect(Number(action?.['expires_at']) - Number(action?.['created_at'])).toBe(60_000)
    await bench.emulator.advance(60_000)
    await bench.reach(id, 'idle')
    expect((await bench.items(id)).at(-1)?.['content']).toMatch(/^after: The call was not answered/)
    expect((await bench.turns(id))[0]?.['status']).toBe('completed')
    const late = await bench.answer(id, { call_id: calls[0], output: 'late' })
    expect(late.body['outcome']).toBe(profile === 'a' ? 'expired' : 'too_late')
  })

  it('LIM-61 TOO-23 STA-37 a call without a deadline waits for days, its workspace asleep', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'call f {}\nsay {{last}}')
    await bench.emulator.advance(3 * 86_400_000)
    expect((await bench.read(id))['status']).toBe('requires_action')
    expect(bench.events(id)).toContain('sandbox.paused')
    await bench.answer(id, { call_id: calls[0], output: 'at last' })
    await bench.reach(id, 'idle')
    expect(bench.events(id)).toContain('sandbox.resumed')
  })

  it('STA-10 STA-11 STA-12 ACT-19 ACT-21 not_delivered: the sandbox held none of the calls, whose answers the turn has lost', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'call f {} & call g {}')
    bench.emulator.faults.set({ not_delivered: 1 })
    const reply = await bench.answer(id, { call_id: calls[0], output: 'x' })
    expect(reply.body['outcome']).toBe('not_delivered')
    expect(await bench.read(id)).toMatchObject({ status: 'working', required_actions: [] })
    expect((await bench.answer(id, { call_id: calls[1], output: 'x' })).body['outcome']).toBe('not_delivered')
    if (profile === 'b') await bench.emulator.advance(2 * 3_600_000)
    await bench.reach(id, 'failed')
    expect((await bench.turns(id))[0]?.['status']).toBe('failed')
    expect(await outputs(bench, id)).toEqual([])
  })

  it('ACT-21 a workspace that was lost in its sleep held no call', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'call f {}')
    await bench.emulator.advance(6 * 60_000)
    bench.emulator.faults.set({ fail_recoveries: 1 })
    const reply = await bench.answer(id, { call_id: calls[0], output: 'x' })
    expect(reply.body['outcome']).toBe('not_delivered')
    expect(bench.events(id)).toContain('workspace.recovery_failed')
    expect((await bench.read(id))['status']).toBe('working')
  })

  it('ACT-22 ACT-23 after not_delivered no waiting helps, and a new turn with the same information does', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'call f {}')
    bench.emulator.faults.set({ not_delivered: 1 })
    const body = { call_id: calls[0], output: 'shipped' }
    for (const wait of ['at once', 'a minute later', 'an hour later']) {
      expect([wait, (await bench.answer(id, body)).body['outcome']]).toEqual([wait, 'not_delivered'])
      await bench.emulator.advance(wait === 'at once' ? 60_000 : 3_600_000)
    }
    await bench.send(id, 'say the answer was shipped')
    // Where the turn that lost its answer hangs on, it is stopped first.
    const [turn] = await bench.turns(id)
    if (turn?.['status'] === 'working') await bench.call('POST', bench.path('cancel', id, String(turn['id'])))
    await bench.reach(id, 'idle')
    expect(await said(bench, id)).toEqual(['the answer was shipped'])
  })

  it('refuses an answer to no call, with both or neither of output and error, or with an output that is no string', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'call f {}')
    const [call_id] = calls
    expect((await bench.answer(id, { call_id: 'call_x', output: 'x' })).status).toBe(404)
    for (const body of [
      { call_id },
      { call_id, output: 'x', error: 'y' },
      { call_id, output: { a: 1 } },
      { output: 'x' },
    ]) {
      expect(codeOf(await bench.answer(id, body))).toBe('invalid_request')
    }
    expect((await bench.read(id))['status']).toBe('requires_action')
    const other = await bench.session()
    expect((await bench.answer(other, { call_id, output: 'x' })).status).toBe(404)
  })

  it('calls a function that the session did not declare, so that a newcomer can try', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'call anything {"a":{"b":"{{last}}"}}')
    expect(calls).toHaveLength(1)
    await bench.answer(id, { call_id: calls[0], output: '' })
    await until(async () => ((await bench.read(id))['status'] === 'idle' ? true : undefined))
  })
})

describe.each(PROFILES)('what is for a person, profile %s', (profile) => {
  it('ACT-26 ACT-28 EVT-76 an approval is for a person, and a program is refused', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'approve shell rm -rf build\nsay gone')
    const [action] = await bench.actions(id)
    expect(action?.['type']).toBe('approval')
    const refused = await bench.answer(id, { call_id: calls[0], output: 'yes' })
    expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_request'])
    expect(messageOf(refused)).toContain('a person resolves it')
    const said = await bench.call('POST', `/_emulator/actions/${calls[0]}`, { approved: true })
    expect(said.status).toBe(200)
    await bench.reach(id, 'idle')
    expect(bench.events(id)).toContain('agent.tool_call')
    expect((await bench.call('POST', `/_emulator/actions/${calls[0]}`, { approved: true })).status).toBe(409)
  })

  it('an approval that a person denies leaves the step out and the turn carries on', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'approve shell rm -rf build\nsay kept')
    bench.emulator.resolveAction(String(calls[0]), { approved: false })
    await bench.reach(id, 'idle')
    expect(bench.events(id)).not.toContain('agent.tool_call')
    const resolved = (await bench.items(id)).find(
      (item) => (item['detail'] as { event: string }).event === 'approval.resolved',
    )
    expect(JSON.stringify(resolved?.['detail'])).toContain('"approved":false')
    expect(JSON.stringify(resolved?.['detail']).includes('"code":null')).toBe(profile === 'b')
  })

  it('ACT-27 ACT-29 a question is for a person, whose words the agent uses', async () => {
    const bench = await open(profile)
    const { id, calls } = await waiting(bench, 'ask Which colour?\nsay {{last}} it is')
    const [action] = await bench.actions(id)
    expect(action).toMatchObject({
      type: 'question',
      [profile === 'a' ? 'question' : 'prompt']: 'Which colour?',
    })
    expect((await bench.answer(id, { call_id: calls[0], output: 'blue' })).status).toBe(400)
    const wrong = await bench.call('POST', `/_emulator/actions/${calls[0]}`, { approved: true })
    expect(wrong.status).toBe(400)
    await bench.call('POST', `/_emulator/actions/${calls[0]}`, { answer: 'blue' })
    await bench.reach(id, 'idle')
    expect((await bench.items(id)).at(-1)?.['content']).toBe('blue it is')
  })

  it('asks once where the mode asks as well as the agent', async () => {
    const bench = await open(profile)
    const id = await bench.session({ agent: { approval_mode: profile === 'a' ? 'ask' : 'confirm' } })
    await bench.send(id, 'approve shell ls\nsay done')
    const [action] = await bench.actions(id)
    bench.emulator.resolveAction(String(action?.['call_id']), { approved: true })
    await bench.reach(id, 'idle')
    expect(await outputs(bench, id)).toEqual(['(ran: ls)'])
    expect(bench.events(id).filter((type) => type === 'approval.requested')).toHaveLength(1)
  })

  it('EVT-80 EVT-87 SES-49 read_only blocks changes, with a reason for the agent', async () => {
    const bench = await open(profile)
    const id = await bench.session({ agent: { approval_mode: 'read_only' } })
    await bench.send(id, 'shell rm x\nsay could not')
    await bench.settle(id)
    const resolved = (await bench.items(id)).find(
      (item) => (item['detail'] as { event: string }).event === 'approval.resolved',
    )
    expect(JSON.stringify(resolved?.['detail'])).toMatch(/denied_read_only/)
    expect(bench.events(id)).not.toContain('agent.tool_call')
  })
})
