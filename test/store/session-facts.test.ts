import { join } from 'node:path'
import Database from 'better-sqlite3'
import { expect, it } from 'vitest'
import type { Store } from '../../src/core/store.ts'
import { frameFact } from '../support/fact.ts'
import { everything, folder, openStore } from './database.ts'

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

/** How many of the newest positions `session_facts` lacks. */
function unlisted(path: string): number {
  const db = new Database(path, { readonly: true })
  const count = db
    .prepare(
      `SELECT (SELECT max(pos) FROM facts) - CAST(value AS INTEGER) FROM checkpoints WHERE name = 'session_facts'`,
    )
    .pluck()
    .get()
  db.close()
  return Number(count)
}

it('the list has the facts of 10,000 held frames once they are released, though no later fact comes', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path }, [everything('app', { events: [] })])
  const held = Array.from({ length: 10_000 }, (_, n) => frameFact(n + 1, 'ses_1'))
  await store.log.commit({ facts: held, scoped: true })
  await store.log.commit({ scoped: true, owners: [{ sessionId: 'ses_1', owner: 'ours', at: 1 }] })
  expect(unlisted(path)).toBeLessThan(1024)
  expect(await framesOf(store, 'ses_1')).toEqual(held.map(({ seq }) => seq))
})

it('a transaction that is rolled back leaves no gap in the list', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path }, [everything('app', { events: [] })])
  const broken = frameFact(9999, 'ses_1', { at: Number.NaN })
  const [good, bad] = await Promise.allSettled([
    store.log.commit({ facts: facts(1, 2000) }),
    store.log.commit({ facts: [broken] }),
  ])
  expect([good.status, bad.status]).toEqual(['fulfilled', 'rejected'])
  expect(unlisted(path)).toBeLessThan(1024)
  expect((await framesOf(store, 'ses_2')).length).toBe(2000 / SESSIONS)
})

it('the facts of a session are found whole and in order, those that its list has and the newest', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store } = await openStore({ path }, [everything('app', { events: [] })])
  const expected = (last: number) =>
    Array.from({ length: last }, (_, n) => n + 1).flatMap((seq) =>
      seq % SESSIONS === 2 ? [String(seq)] : [],
    )
  for (let from = 1; from <= 12_300; from += 300) await store.log.commit({ facts: facts(from, 300) })
  const db = new Database(path, { readonly: true })
  const listed = Number(db.prepare('SELECT count(*) FROM session_facts').pluck().get())
  db.close()
  expect(listed).toBeGreaterThan(10_000)
  expect(listed).toBeLessThan(12_300)
  expect(await framesOf(store, 'ses_2')).toEqual(expected(12_300))
  const { rows } = await store.read.facts({ limit: 300, order: 'desc', sessionId: 'ses_2' })
  expect(rows.map(({ seq }) => seq)).toEqual(expected(12_300).slice(-300).toReversed())
  await store.close()
  const again = await openStore({ path }, [everything('app')])
  await again.store.log.commit({ facts: facts(12_301, 100) })
  expect(await framesOf(again.store, 'ses_2')).toEqual(expected(12_400))
  // A log that begins behind all that was pruned keeps no entry of it.
  for (let more = true; more;) ({ more } = await again.store.log.prune(-Infinity))
  expect((await framesOf(again.store, 'ses_2')).length).toBe(20)
  const left = new Database(path, { readonly: true })
  expect(left.prepare('SELECT count(*) FROM session_facts').pluck().get()).toBe(0)
  left.close()
})
