import { describe, expect, test } from 'vitest'
import { assertWhole } from '../support/oracle.ts'
import { PROFILES } from './engines.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

const CALL = 'call lookup_order {"order_id":"42"}'

describe.for(PROFILES)('killed (%s)', (details) => {
  // [fault tool-2]
  test('killed between a run and its answer: the stored result is posted and the tool not run again', async () => {
    await using rig = await Rig.open({ details, process: true, tools: { lookup_order: {} } })
    // The answer's way is closed until the kill.
    rig.gateway.intercept = ({ method, url }) =>
      method === 'POST' && rig.client.answers(url) ? 'reset' : undefined
    const session = await rig.client.start(CALL, 'say {{last}}')
    await until('stored result', async () => (await rig.list('/api/calls'))[0]?.['state'] === 'finished')
    await rig.kill()
    rig.app.run = () => ({ body: 'something else' })
    rig.gateway.intercept = () => undefined
    await rig.start()
    await rig.client.reached(session, 'idle')
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs).toHaveLength(1)
    expect(rig.emulator.ledger().answers).toMatchObject([{ output: 'lookup_order says {"order_id":"42"}' }])
  })

  // [fault tool-3]
  test('killed after a posting whose reply it never saw: the same answer counts, once', async () => {
    await using rig = await Rig.open({ details, process: true, tools: { lookup_order: {} } })
    rig.emulator.faults.set({ lose_answer_replies: 1 })
    rig.gateway.intercept = ({ method, url }) =>
      method === 'POST' && rig.client.answers(url) && rig.emulator.ledger().answers.length > 0
        ? 'reset'
        : undefined
    await rig.client.start(CALL, 'say {{last}}')
    await until('taken answer', () => rig.emulator.ledger().answers.length === 1)
    await rig.kill()
    await rig.start()
    const answered = await rig.event('call.answered')
    expect(answered.data.call?.['call_id']).toBe(rig.emulator.ledger().answers[0]?.call_id)
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs).toHaveLength(1)
  })

  // [fault tool-1]
  test('killed while a tool runs: it runs again under the same key, marked as uncertain', async () => {
    await using rig = await Rig.open({ details, process: true, tools: { lookup_order: {} } })
    rig.app.run = (_run, nth) => (nth === 1 ? { hang: true } : { body: 'second' })
    await rig.client.start(CALL)
    await until('run', () => rig.app.runs.length === 1)
    await rig.kill()
    await rig.start()
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs.map(({ call }) => [call.attempt, call.uncertain])).toEqual([
      [1, false],
      [2, true],
    ])
    expect(new Set(rig.app.runs.map(({ headers }) => headers['idempotency-key'])).size).toBe(1)
    expect(rig.emulator.ledger().answers).toMatchObject([{ output: 'second' }])
  })

  test('after_crash: fail runs at most once, and posts the fixed error', async () => {
    await using rig = await Rig.open({
      details,
      process: true,
      tools: { lookup_order: { after_crash: 'fail' } },
    })
    rig.app.run = () => ({ hang: true })
    await rig.client.start(CALL)
    await until('run', () => rig.app.runs.length === 1)
    await rig.kill()
    await rig.start()
    await assertWhole(rig, { tools: ['lookup_order'] })
    expect(rig.app.runs).toHaveLength(1)
    expect(rig.emulator.ledger().answers).toMatchObject([
      { output: null, error: 'The tool could not complete this request.' },
    ])
  })

  // [fault process-1]
  test('SIGTERM lets what is under way end, exits with 0, and the next start repeats nothing', async () => {
    await using rig = await Rig.open({ details, process: true })
    rig.app.handle = () => ({ delay: 30 })
    await rig.client.start('say 1', 'say 2', 'say 3', 'say 4')
    await until('first callback', () => rig.app.callbacks.length > 0)
    await rig.stop()
    rig.app.handle = () => ({})
    await rig.start()
    await assertWhole(rig)
    const ids = rig.app.callbacks.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
  })
})
