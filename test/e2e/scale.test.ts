import { describe, expect, test } from 'vitest'
import { PROFILES } from './engines.ts'
import { assertWhole } from '../support/oracle.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

const HOUR = 3_600_000
/** Tests make what a client would take minutes for. */
const ROOMY = { sessions: 500, readsBurst: 100_000, readsPerSecond: 10_000, creationBurst: 10_000 }

describe.for(PROFILES)('more than a page (%s)', (details) => {
  test('turns that happened during a stop are all delivered, in their order', async () => {
    await using rig = await Rig.open({ details, emulator: { limits: ROOMY } })
    const { client, emulator } = rig
    const session = await client.start('say 0')
    await rig.event('turn.settled')
    await rig.stop()
    for (let turn = 1; turn < 45; turn++) {
      await client.send(session, `say ${turn}`)
      await client.reached(session, 'idle')
      await until('turn', () => emulator.ledger().turns.length === turn + 1)
    }
    await rig.start()
    await assertWhole(rig)
    const completed = rig.app.delivered().filter(({ type }) => type === 'turn.completed')
    expect(completed.map(({ data }) => data.turn?.id)).toEqual(emulator.ledger().turns.map(({ id }) => id))
  })

  test('sessions that the service lists on several pages are all delivered', async () => {
    await using rig = await Rig.open({
      details,
      channels: ['poll'],
      start: false,
      emulator: { limits: ROOMY },
      config: { stream: { enabled: false, start_from: 'beginning' } },
    })
    const sessions = []
    for (let count = 0; count < 130; count++) sessions.push(await rig.client.start('say Hello'))
    await until(
      'all turns',
      () => rig.emulator.ledger().turns.filter(({ artifacts }) => artifacts === 'ready').length === 130,
    )
    await rig.start()
    await assertWhole(rig, { transcript: false })
    const created = rig.app.delivered().filter(({ type }) => type === 'session.created')
    expect(new Set(created.map(({ session_id }) => session_id))).toEqual(new Set(sessions))
  })

  test('a transcript of several pages of items is delivered complete, once and in order', async () => {
    await using rig = await Rig.open({ details, channels: ['poll'], emulator: { limits: ROOMY } })
    const said = Array.from({ length: 250 }, (_, index) => `message ${index}`)
    await rig.client.start(...said.map((text) => `say ${text}`))
    await until('the last message', () => messages(rig).length >= said.length)
    await assertWhole(rig, { transcript: false })
    expect(messages(rig)).toEqual(said)
  })

  test.for([
    { name: 'behind', offset: -HOUR },
    { name: 'ahead of', offset: HOUR },
  ])('a service whose clock is an hour $name ours is followed all the same', async ({ offset }) => {
    await using rig = await Rig.open({
      details,
      channels: ['stream', 'poll'],
      start: false,
      emulator: { startAt: Date.now() + offset },
      tools: { lookup_order: {} },
    })
    const { client } = rig
    const resting = await client.start('say long ago')
    await client.reached(resting, 'idle')
    // Dates have a resolution of one second, so what is older than our start must be older by more.
    await rig.emulator.advance(5000)
    const before = rig.emulator.ledger().last_seq
    const calling = await client.withTools({ lookup_order: 5 })
    await client.send(calling, 'call not_configured {}')
    const [call] = await client.required(calling)
    await rig.start()
    await rig.event('action.required')
    await client.answer(calling, call?.call_id ?? '', 'x')
    await client.send(resting, 'say again')
    await rig.event('turn.settled', ({ session_id }) => session_id === resting)
    await client.reached(calling, 'idle')
    await client.send(calling, 'call lookup_order {"order_id":"42"}', 'say {{last}}')
    await rig.event('call.answered')
    await assertWhole(rig, { tools: ['lookup_order'], except: [resting, calling], afterSeq: before })
    const first = rig.emulator.ledger().turns[0]?.id
    expect(rig.app.seen().some(({ data }) => data.turn?.id === first)).toBe(false)
  })
})

function messages(rig: Rig): unknown[] {
  return rig.app
    .delivered()
    .filter(({ type }) => type === 'agent.message')
    .map(({ data }) => data.payload?.['content'])
}
