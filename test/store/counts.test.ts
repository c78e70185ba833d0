import Database from 'better-sqlite3'
import { expect, it, onTestFinished } from 'vitest'
import { keepCounts } from '../../src/sidecar/store/keeping.ts'
import { createCounts } from '../../src/sidecar/store/sqlite/counts.ts'
import { frameFact } from '../support/fact.ts'
import { VirtualClock } from '../support/clock.ts'
import { join } from 'node:path'
import { folder, openStore } from './database.ts'

/** A clock by which every count takes `ms`. */
class Slow extends VirtualClock {
  ms = 0
  #passed = 0
  override steady(): number {
    return super.steady() + this.#passed++ * this.ms
  }
}

it('slow counts take a twentieth of the time at most; fast counts are made each time', async () => {
  const path = join(folder(), 'sidecar.db')
  const { store, clock: virtual } = await openStore({ path })
  const db = new Database(path, { readonly: true })
  onTestFinished(() => void db.close())
  const clock = new Slow()
  const counts = createCounts(db, clock)
  const pending = async () => (await counts()).deliveries['app']?.pending
  let seq = 0
  const commit = async (): Promise<void> => {
    const done = store.log.commit({ facts: [frameFact(++seq)] })
    await virtual.settle()
    await done
  }
  for (const ms of [0, 10]) {
    clock.ms = ms
    await commit()
    expect(await pending()).toBe(seq)
  }
  clock.ms = 500
  expect(await pending()).toBe(2)
  await commit()
  expect(await pending()).toBe(2)
  await clock.advance(20 * 500)
  expect(await pending()).toBe(3)
})

it('counts that are asked for at once are one; a failure that took long is kept, and a short one is not', async () => {
  const clock = new VirtualClock()
  let made = 0
  let answer: () => Promise<number> = () => Promise.resolve(made)
  const counts = keepCounts(clock, () => (made++, answer()), { short: 20, longest: 10_000 })
  expect(await Promise.all([counts(), counts()])).toEqual([1, 1])
  expect(await counts()).toBe(2)
  const broken = Promise.withResolvers<number>()
  answer = () => broken.promise
  const failed = counts()
  await clock.advance(5000)
  broken.reject(new Error('too slow'))
  await expect(failed).rejects.toThrow('too slow')
  answer = () => Promise.resolve(made)
  await expect(counts()).rejects.toThrow('too slow')
  await clock.advance(10_000)
  expect(await counts()).toBe(4)
  answer = () => {
    throw new Error('closed')
  }
  await expect(counts()).rejects.toThrow('closed')
  answer = () => Promise.resolve(made)
  expect(await counts()).toBe(6)
})
