import { describe, expect, it } from 'vitest'
import { faultOf, PROFILES, stand, until } from './support.ts'

const QUICK = { interval: 5 }

describe.each(PROFILES)('a run (profile %s)', (profile) => {
  it('answers the function calls of its turn and gives the settled turn', async () => {
    const { client, emulator } = await stand(profile)
    const { id } = await client.sessions.create()
    const seen: unknown[] = []
    const turn = await client.run(id, 'call add {"a":1,"b":2} & call fail {}\nsay {{last}}', {
      ...QUICK,
      functions: {
        add: (args, { callId, sessionId }) => {
          seen.push(args, typeof callId, sessionId)
          return { sum: 3 }
        },
        fail: () => {
          throw new Error('the password is hunter2')
        },
      },
    })
    expect(turn).toMatchObject({ status: 'completed', artifacts: 'ready' })
    expect(seen).toEqual([{ a: 1, b: 2 }, 'string', id])
    const answers = emulator.ledger().answers.map(({ output, error }) => output ?? error)
    expect(new Set(answers)).toEqual(new Set(['{"sum":3}', 'The tool could not complete this request.']))
  })

  it('runs a function once when the reply to its answer is lost', async () => {
    const { client, emulator } = await stand(profile)
    const { id } = await client.sessions.create()
    emulator.faults.set({ lose_answer_replies: 5 })
    let runs = 0
    const turn = await client.run(id, 'call count', { ...QUICK, functions: { count: () => ++runs } })
    expect(turn.status).toBe('completed')
    expect(runs).toBe(1)
    expect(emulator.ledger().answers).toHaveLength(1)
  })

  it('waits while another turn is under way, and returns its own turn', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create({ input: 'wait 100ms\nsay first' })
    const turn = await client.run(id, 'fail out of disk', QUICK)
    expect(turn.status).toBe('failed')
  })

  it('survives a service that is unreachable for a moment', async () => {
    const { client, emulator } = await stand(profile)
    const { id } = await client.sessions.create()
    const running = client.run(id, 'wait 50ms\nsay done', QUICK)
    await until(() => (emulator.ledger().turns.length > 0 ? true : undefined))
    emulator.faults.set({ server_errors: 10 })
    expect((await running).status).toBe('completed')
  })

  it('says why no turn was opened, also after an earlier one failed', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create()
    expect((await client.run(id, 'fail out of disk', QUICK)).status).toBe('failed')
    expect(await faultOf(client.run(id, 'cannot start no workspace', QUICK))).toMatchObject({
      code: 'run_not_started',
      message: 'no turn was opened: no workspace',
    })
    expect((await client.run(id, 'say better', QUICK)).status).toBe('completed')
  })

  it('says that an answer was not delivered', async () => {
    const { client, emulator } = await stand(profile)
    const { id } = await client.sessions.create()
    emulator.faults.set({ not_delivered: 1 })
    const running = client.run(id, 'call one', { ...QUICK, functions: { one: () => 1 } })
    expect(await faultOf(running)).toMatchObject({ code: 'not_delivered' })
  })

  it('does not wait for a function that hangs beyond its timeout', async () => {
    const { client } = await stand(profile)
    const { id } = await client.sessions.create({ agent: { tools: [{ type: 'function', name: 'hang' }] } })
    const functions = { hang: () => new Promise(() => undefined) }
    const running = client.run(id, 'call hang', { ...QUICK, timeout: 300, functions })
    expect(await faultOf(running)).toMatchObject({ code: 'timeout' })
  })

  it('leaves calls without a function to other programs until their deadline', async () => {
    const { client, emulator } = await stand(profile)
    const { id } = await client.sessions.create()
    const running = client.run(id, 'call unknown\nask Which?', { ...QUICK, timeout: 300, functions: {} })
    expect(await faultOf(running)).toMatchObject({ code: 'timeout' })
    expect(emulator.ledger().answers).toEqual([])
  })
})
