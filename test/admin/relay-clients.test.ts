import { describe, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { PROFILES } from '../support/client.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'
import { EventReader } from './event-reader.ts'

describe.for(PROFILES)('clients of the service, pointed at the relay (%s)', (details) => {
  test('a bare parser of event streams reads there what the service itself sends', async () => {
    await using rig = await Rig.open({ details, config: { stream: { start_from: 'beginning' } } })
    const session = await rig.client.start('say Hello', 'shell ls', 'write outputs/a.txt x')
    await rig.event('turn.settled')
    const { last_seq: last } = rig.emulator.ledger()
    const authorization = { authorization: `Bearer ${rig.client.token.token}` }
    await using direct = await EventReader.open(
      `${rig.emulator.baseUrl}/v1/events?last_event_id=0`,
      authorization,
    )
    await until('all of it', () => direct.ids.includes(String(last)))
    const base = rig.program?.admin ?? ''
    await using relayed = await EventReader.open(`${base}/v1/events?last_event_id=0`)
    await until('all of it', () => relayed.ids.includes(String(last)))
    expect(relayed.frames).toEqual(direct.frames.filter(({ id }) => id !== undefined))

    await using one = await EventReader.open(`${base}/v1/sessions/${session}/events?last_event_id=0`)
    await until('all of it', () => one.ids.includes(String(last)))
    expect(one.frames).toEqual(relayed.frames)
  })

  test('the client of this package follows the organization and one session there', async () => {
    await using rig = await Rig.open({ details })
    const session = await rig.client.create()
    await using client = createClient({ baseUrl: rig.program?.admin ?? '', token: 'any' })
    await using events = await client.events.stream()
    await using own = await client.sessions.events(session)
    const other = await rig.client.create()
    await rig.client.send(other, 'say Other')
    await rig.event('turn.settled', ({ session_id }) => session_id === other)
    await rig.client.send(session, 'say Hello')

    const said: string[] = []
    for await (const event of events) {
      if (event.type === 'agent.message') said.push(String(event.session_id))
      if (event.type === 'turn.ended' && event.session_id === session) break
    }
    expect(said).toEqual([other, session])
    const types: string[] = []
    for await (const event of own) {
      expect(event.session_id).toBe(session)
      types.push(event.type)
      if (event.type === 'turn.ended') break
    }
    expect(types).toContain('agent.message')
  })

  test('transient frames come in their place among the others', async () => {
    await using rig = await Rig.open({ details })
    const session = await rig.client.create()
    const authorization = { authorization: `Bearer ${rig.client.token.token}` }
    await using direct = await EventReader.open(`${rig.emulator.baseUrl}/v1/events`, authorization)
    await using relayed = await EventReader.open(`${rig.program?.admin ?? ''}/v1/events?transient=1`)
    await until('both', () => direct.retry !== null && relayed.retry !== null)
    await rig.client.send(session, 'think Hmm', 'say One', 'say Two', 'say Three')
    for (const reader of [direct, relayed])
      await until('the end', () => reader.frames.some(({ event }) => event === 'turn.ended'))
    const ofTurn = ({ frames }: EventReader) =>
      frames.slice(0, frames.findIndex(({ event }) => event === 'turn.ended') + 1)
    expect(ofTurn(relayed)).toEqual(ofTurn(direct))
    expect(ofTurn(relayed).filter(({ id }) => id === undefined).length).toBeGreaterThan(3)
  })
})
