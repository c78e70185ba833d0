import { describe, expect, it } from 'vitest'
import type { Verdict } from '../../src/sidecar/deliver/targets/verdict.ts'
import { frameFact } from '../support/fact.ts'
import { DELIVERED, deliveryWorld } from './world.ts'

/** What a callback takes, milliseconds. */
const TAKES = 200

async function slowWorld(concurrency: number) {
  const world = await deliveryWorld({ spec: { concurrency } })
  world.reply = () =>
    new Promise<Verdict>((resolve) => void world.clock.after(TAKES, () => resolve(DELIVERED)))
  const delta = (sessionId: string, nth: number): void =>
    world.worker.transient({ ...frameFact(1, sessionId), seq: null, pos: 0, id: `evt_t_${sessionId}_${nth}` })
  return Object.assign(world, { delta })
}

describe('transient events', () => {
  it('use a quarter of the slots, one of each session at once', async () => {
    const world = await slowWorld(16)
    for (let nth = 0; nth < 20; nth++) for (const session of ['a', 'b']) world.delta(session, nth)
    await world.clock.advance(1)
    expect(world.sent.map(({ sessionId }) => sessionId)).toEqual(['a', 'b'])
    for (let nth = 0; nth < 9; nth++) world.delta(`ses_${nth}`, 0)
    await world.clock.advance(1)
    expect(world.inFlight).toBe(4)
  })

  it.each([1, 4])('wait for facts, which never wait for them, at concurrency %i', async (concurrency) => {
    const world = await slowWorld(concurrency)
    world.delta('a', 0)
    world.delta('b', 0)
    await world.clock.advance(1)
    expect(world.sent).toHaveLength(1)
    const facts = ['c', 'd', 'e', 'f', 'g', 'h'].map((session, nth) =>
      frameFact(nth + 1, session, { family: 'state' }),
    )
    await world.commit(facts)
    expect(world.inFlight).toBe(concurrency + 1)
    for (let left = facts.length; left > 0; left -= concurrency) await world.clock.advance(TAKES)
    expect(world.sent.slice(1, 7).map(({ seq }) => seq)).toEqual(facts.map(({ seq }) => seq))
    expect(world.sent.filter(({ sessionId }) => sessionId === 'b')).toHaveLength(1)
  })

  it('are dropped when they have waited for two seconds, and when a thousand wait; each is counted', async () => {
    const world = await slowWorld(1)
    for (let nth = 0; nth < 1010; nth++) world.delta('a', nth)
    await world.clock.settle()
    expect(world.dropped).toHaveLength(9)
    await world.clock.advance(10_000)
    expect(world.sent).toHaveLength(11)
    expect(world.dropped).toHaveLength(999)
  })

  it('are the newest ones after facts used every slot for long', async () => {
    const world = await slowWorld(1)
    const facts = Array.from({ length: 150 }, (_, nth) => frameFact(nth + 1, 'b', { family: 'state' }))
    await world.commit(facts)
    const total = (150 * TAKES) / 20
    for (let nth = 0; nth < total; nth++) {
      world.delta('a', nth)
      await world.clock.advance(20)
    }
    await world.clock.advance(5000)
    const sent = world.sent.filter(({ sessionId }) => sessionId === 'a')
    expect(sent).toHaveLength(10)
    expect(world.dropped).toHaveLength(total - 10)
  })
})
