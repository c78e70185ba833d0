import { expect, vi } from 'vitest'
import { VirtualClock } from '../support/clock.ts'
import { frameFact } from '../support/fact.ts'
import { everything, openStore } from './database.ts'
import { it } from './engines.ts'

const MANY = 50_000
/** Every so manieth is of the kind that is looked for. */
const RARE = 12_345

async function longLog() {
  const clock = new VirtualClock()
  const rare = everything('rare', { events: ['agent.rare'] })
  const { store } = await openStore({ clock }, [everything('app'), rare])
  const facts = Array.from({ length: MANY }, (_, index) =>
    frameFact(index + 1, `ses_${index % 7}`, {
      type: (index + 1) % RARE === 0 ? 'agent.rare' : 'agent.text',
    }),
  )
  for (let from = 0; from < MANY; from += 10_000)
    await store.log.commit({ facts: facts.slice(from, from + 10_000) })
  return { read: store.read, facts, soon: vi.spyOn(clock, 'soon') }
}

const idsOf = (facts: readonly { id: string }[]) => facts.map(({ id }) => id)

it.each(['asc', 'desc'] as const)(
  'finds all facts of a rare type, a page at a time, in order: %s',
  async (order) => {
    const { read, facts } = await longLog()
    const rare = idsOf(facts.filter(({ type }) => type === 'agent.rare'))
    const found: string[] = []
    for (;;) {
      const after = found.at(-1)
      const page = { limit: 1, order, type: 'agent.rare' }
      const [next] = (await read.facts(after === undefined ? page : { ...page, after })).rows
      if (next === undefined) break
      found.push(next.id)
    }
    expect(found).toEqual(order === 'asc' ? rare : rare.toReversed())
  },
)

it.file('yields to other work again and again while it searches a long log', async () => {
  const { read, soon } = await longLog()
  expect((await read.facts({ limit: 2, order: 'desc', type: 'agent.none' })).rows).toEqual([])
  expect(soon.mock.calls.length).toBeGreaterThan(2)
})

it('answers at once where the newest facts are of the type that is asked for', async () => {
  const { read, facts, soon } = await longLog()
  const found = (await read.facts({ limit: 100, order: 'desc', type: 'agent.text', sessionId: 'ses_3' })).rows
  const wanted = facts.filter(({ type, sessionId }) => type === 'agent.text' && sessionId === 'ses_3')
  expect(idsOf(found)).toEqual(idsOf(wanted.slice(-100).toReversed()))
  expect(soon).not.toHaveBeenCalled()
})

it('finds all deliveries of a handler that selects few facts, a page at a time, the newest first', async () => {
  const { read, facts } = await longLog()
  const found: { id: string; factId: string }[] = []
  for (;;) {
    const after = found.at(-1)?.id
    const page = { limit: 1, handler: 'rare' }
    const [next] = (await read.deliveries(after === undefined ? page : { ...page, after })).rows
    if (next === undefined) break
    found.push(next)
  }
  const rare = idsOf(facts.filter(({ type }) => type === 'agent.rare'))
  expect(found.map(({ factId }) => factId)).toEqual(rare.toReversed())
  const [first] = (await read.deliveries({ limit: 1, handler: 'rare', factId: rare[0] ?? '' })).rows
  expect(first?.factId).toBe(rare[0])
})

it.file('yields to other work while it searches for dead deliveries and finds none', async () => {
  const { read, soon } = await longLog()
  expect((await read.deliveries({ limit: 2, status: 'dead' })).rows).toEqual([])
  expect(soon.mock.calls.length).toBeGreaterThan(2)
})
