import { join } from 'node:path'
import { expect } from 'vitest'
import type { Store } from '../../src/core/store.ts'
import { frameFact } from '../support/fact.ts'
import { everything, folder, openStore } from './database.ts'
import { it, tablesOf } from './engines.ts'

const SESSIONS = 5

const facts = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => frameFact(from + n, `ses_${(from + n) % SESSIONS}`))

async function framesOf(store: Store, sessionId: string): Promise<string[]> {
  const seqs: string[] = []
  for (let after = 0; ;) {
    const { frames, next, more } = await store.read.frames({ after, sessionId })
    for (const { seq } of frames) seqs.push(seq ?? '')
    if (!more) return seqs
    after = next
  }
}

/** 10,000 frames that are held, and then released by one commit. @returns their seqs */
async function releaseHeld(store: Store): Promise<(string | null)[]> {
  const held = Array.from({ length: 10_000 }, (_, n) => frameFact(n + 1, 'ses_1'))
  await store.log.commit({ facts: held, scoped: true })
  await store.log.commit({ scoped: true, owners: [{ sessionId: 'ses_1', owner: 'ours', at: 1 }] })
  return held.map(({ seq }) => seq)
}

/** Two commits at once, of which the second is rolled back. */
async function commitBeside(store: Store): Promise<void> {
  const broken = frameFact(9999, 'ses_1', { at: Number.NaN })
  const [good, bad] = await Promise.allSettled([
    store.log.commit({ facts: facts(1, 2000) }),
    store.log.commit({ facts: [broken] }),
  ])
  expect([good.status, bad.status]).toEqual(['fulfilled', 'rejected'])
}

/** So many that the list has most of them, and lacks the newest. */
const MANY = 12_300

async function fill(store: Store): Promise<void> {
  for (let from = 1; from <= MANY; from += 300) await store.log.commit({ facts: facts(from, 300) })
}

/** As retention does, all that it may. */
async function prune(store: Store): Promise<void> {
  for (let more = true; more;) ({ more } = await store.log.prune(-1))
}

/** How many of the newest positions `session_facts` lacks. */
async function unlisted(path: string): Promise<number> {
  const tables = await tablesOf(path)
  const count = await tables.value(
    `SELECT (SELECT max(pos) FROM facts) - CAST(value AS INTEGER) FROM checkpoints WHERE name = 'session_facts'`,
  )
  return Number(count)
}

it('10,000 held frames are found whole and in order once they are released', async () => {
  const { store } = await openStore({}, [everything('app', { events: [] })])
  const released = await releaseHeld(store)
  expect(await framesOf(store, 'ses_1')).toEqual(released)
})

it.file(
  'the list has the facts of 10,000 held frames once they are released, though no later fact comes',
  async () => {
    const path = join(folder(), 'sidecar.db')
    const { store } = await openStore({ path }, [everything('app', { events: [] })])
    await releaseHeld(store)
    expect(await unlisted(path)).toBeLessThan(1024)
  },
)

it('a transaction that is rolled back leaves no gap among the facts of a session', async () => {
  const { store } = await openStore({}, [everything('app', { events: [] })])
  await commitBeside(store)
  expect(await framesOf(store, 'ses_2')).toHaveLength(2000 / SESSIONS)
})

it.file('a transaction that is rolled back leaves no gap in the list', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path }, [everything('app', { events: [] })])
  await commitBeside(store)
  expect(await unlisted(path)).toBeLessThan(1024)
})

it('the facts of a session are found whole and in order, those that its list has and the newest', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path }, [everything('app', { events: [] })])
  const expected = (last: number) =>
    Array.from({ length: last }, (_, n) => n + 1).flatMap((seq) =>
      seq % SESSIONS === 2 ? [String(seq)] : [],
    )
  await fill(store)
  expect(await framesOf(store, 'ses_2')).toEqual(expected(MANY))
  const { rows } = await store.read.facts({ limit: 300, order: 'desc', sessionId: 'ses_2' })
  expect(rows.map(({ seq }) => seq)).toEqual(expected(MANY).slice(-300).toReversed())
  await store.close()
  const again = await openStore({ path }, [everything('app')])
  await again.store.log.commit({ facts: facts(MANY + 1, 100) })
  expect(await framesOf(again.store, 'ses_2')).toEqual(expected(MANY + 100))
  await prune(again.store)
  expect(await framesOf(again.store, 'ses_2')).toHaveLength(20)
})

it.file('the list lacks the newest facts, and has none that was pruned', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path }, [everything('app', { events: [] })])
  await fill(store)
  const { value } = await tablesOf(path)
  const listed = async () => Number(await value('SELECT count(*) FROM session_facts'))
  expect(await listed()).toBeGreaterThan(10_000)
  expect(await listed()).toBeLessThan(MANY)
  // A log that begins behind all that was pruned keeps no entry of it.
  await store.log.commit({ facts: facts(MANY + 1, 100) })
  await prune(store)
  expect(await listed()).toBe(0)
})
