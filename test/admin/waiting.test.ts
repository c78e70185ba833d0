import { afterEach, expect, it } from 'vitest'
import { createThroughput } from '../../src/sidecar/status.ts'
import { actionRaw, callOf, frameFact, readingOf, sessionRaw, text, turnRaw } from './seed.ts'
import { dataOf, startAdmin, type Running } from './running.ts'

let running: Running | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

/** Sessions `s-1` to `s-3`, each with a turn and an approval; the later the number, the older its turn. */
async function start(): Promise<Running> {
  running = await startAdmin({
    async seed(store) {
      for (const n of [1, 2, 3]) {
        const created = 1_700_000_000_000 - n * 60_000
        const approval = actionRaw(`call_${n}`, { type: 'approval', turn_id: `t-${n}`, created_at: created })
        const turn = turnRaw(`t-${n}`, `s-${n}`, { status: 'working', created_at: created, artifacts: null })
        const reading = readingOf(
          sessionRaw(`s-${n}`, { status: 'requires_action', required_actions: [approval] }),
          { turns: [turn] },
        )
        await store.log.commit({
          readings: [{ ...reading, turns: reading.turns.map((known) => ({ ...known, settled: false })) }],
        })
      }
    },
  })
  return running
}

it('turns that are not settled come with what they wait for, the oldest first, page by page', async () => {
  const { get } = await start()
  const first = await get('/api/turns?limit=2')
  expect(dataOf(first).map(({ id }) => id)).toEqual(['t-3', 't-2'])
  expect(dataOf(first)[0]).toMatchObject({
    session_id: 's-3',
    session_title: 'title of s-3',
    status: 'working',
    waits_for: [{ type: 'approval', call_id: 'call_3', name: 'lookup_order' }],
  })
  const second = await get(`/api/turns?limit=2&after=${text(first.json['last_id'])}`)
  expect([dataOf(second).map(({ id }) => id), second.json['has_more']]).toEqual([['t-1'], false])
  expect(dataOf(await get('/api/turns?after=unknown'))).toEqual([])
})

it('open actions come the oldest first, and go when they are resolved', async () => {
  const { get, store } = await start()
  const ids = async (query = '') => dataOf(await get(`/api/actions${query}`)).map(({ call_id: id }) => id)
  expect(await ids('?limit=2')).toEqual(['call_3', 'call_2'])
  expect(await ids('?after=call_2')).toEqual(['call_1'])
  expect(dataOf(await get('/api/actions'))[0]).toMatchObject({
    type: 'approval',
    session_title: 'title of s-3',
    turn_id: 't-3',
  })
  const known = await store.resources.known('s-3')
  const gone = readingOf(sessionRaw('s-3'), { revision: known?.revision ?? 0 })
  await store.log.commit({ readings: [{ ...gone, resolved: ['call_3'] }] })
  expect(await ids()).toEqual(['call_2', 'call_1'])
})

it('sessions are found by a part of the title, whatever its case, and by the whole id', async () => {
  const { get } = await start()
  const ids = async (words: string) => dataOf(await get(`/api/sessions?text=${words}`)).map(({ id }) => id)
  expect(await ids('TITLE%20OF%20S-2')).toEqual(['s-2'])
  expect(await ids('s-1')).toEqual(['s-1'])
  expect(await ids('%25')).toEqual([])
  expect((await get('/api/sessions?text=')).status).toBe(400)
})

it('a fact says to which turn it belongs', async () => {
  const { get, store } = await start()
  await store.log.commit({ facts: [frameFact('7', 's-1', { turnId: 't-1' }), frameFact('8', 's-1')] })
  const turns = dataOf(await get('/api/events?session_id=s-1')).map(({ turn_id: turn }) => turn)
  expect(turns).toEqual([null, 't-1'])
})

it('throughput is counted by the minute, quiet ones included, for an hour', () => {
  let now = 60_000 * 1000
  const { observer, report } = createThroughput({ now: () => now })
  const fact = { ...frameFact('1', 's-1'), pos: 1 }
  const callback = { handler: 'app', fact, attempt: { at: 1, ms: 1 }, number: 1, wait: null }
  observer.fact?.(fact, null)
  observer.callback?.({ ...callback, outcome: 'delivered' })
  observer.callback?.({ ...callback, outcome: 'unreachable' })
  now += 3 * 60_000
  const call = { tool: 'x', callId: 'c', sessionId: 's', outcome: 'delivered', seconds: 1 }
  observer.call?.({ ...call, call: callOf('c', 's') })
  const zero = { facts: 0, delivered: 0, failed: 0, calls: 0 }
  expect(report()).toEqual([
    { at: 60_000_000, facts: 1, delivered: 1, failed: 1, calls: 0 },
    { at: 60_060_000, ...zero },
    { at: 60_120_000, ...zero },
    { at: 60_180_000, ...zero, calls: 1 },
  ])
  now += 24 * 60 * 60_000
  expect(report()).toHaveLength(60)
  expect(report().at(-1)?.at).toBe(now)
})
