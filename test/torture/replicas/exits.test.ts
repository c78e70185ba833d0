import { expect, it } from 'vitest'
import { StoreError } from '../../../src/core/store-error.ts'
import { createDatabase } from '../../support/postgres.ts'
import { adminOf, openProcess } from '../../store/process.ts'
import type { Life } from '../sidecar.ts'
import { Tally } from '../tally.ts'
import { PostgresBooks } from './books.ts'
import { fencingsOf, hasty, unexcused, type Fencing, type Past } from './exits.ts'
import { watchWrites } from './writes.ts'

const FENCED = `error: store: ${new StoreError('fenced').message}.`
const UNREACHABLE = 'error: store: no PostgreSQL answers at 127.0.0.1:5432 (ECONNREFUSED)'

/** A life that ended by itself with 1, from 10,000 to 60,000 milliseconds. */
function life(parts: Partial<Life>): Life {
  const ended = { pid: 7, number: 1, from: 10_000, until: 60_000, stoppedAt: null, ready: true }
  return { ...ended, code: 1, signal: null, words: [FENCED], ...parts }
}

/** A process of one life, which was in trouble in that time. */
function past(one: Life, trouble: readonly [from: number, until: number] | null = null): Past {
  const meets = (from: number, until: number): boolean =>
    trouble !== null && trouble[0] < until && trouble[1] > from
  const sidecar = { lives: [one] }
  return { number: 1, diedAlone: [one], sidecar, wasCutOff: meets, wasFrozen: () => false }
}

const FENCING: Fencing = { pid: 7, startedAt: 10_500, at: 55_000, silent: 15_500 }

function found(one: Past, fencings: readonly Fencing[] = []): number {
  return unexcused({ replicas: [one], tally: new Tally() }, fencings).length
}

it('excuses a process that says it was fenced, and was, after the time of a lease', () => {
  expect(found(past(life({})), [FENCING])).toBe(0)
  expect(hasty([past(life({}))], [FENCING])).toEqual([])
})

it('finds a process that says it was fenced, and was not, though its line was cut a moment before', () => {
  const replicas = [past(life({}), [58_000, 59_000])]
  expect(unexcused({ replicas, tally: new Tally() }, [])).toMatchObject([
    { invariant: 'exit', message: expect.stringContaining('ended by itself with 1') as string },
  ])
})

it('finds it where another process, or an earlier one of the same number, was fenced', () => {
  expect(found(past(life({})), [{ ...FENCING, pid: 8 }])).toBe(1)
  expect(found(past(life({})), [{ ...FENCING, startedAt: 9000 }])).toBe(1)
})

it('finds a process that was fenced although it had renewed its leases a moment before', () => {
  expect(found(past(life({})), [{ ...FENCING, silent: 4000 }])).toBe(1)
})

it('finds a process that was fenced too early and lived on', () => {
  const early = { ...FENCING, at: 20_000, silent: 4000 }
  expect(hasty([past(life({ code: null, signal: 'SIGKILL', words: [] }))], [early])).toMatchObject([
    { invariant: 'I8', message: expect.stringContaining('fenced 4000 ms after') as string },
  ])
  // It was killed, and the next one that started knew.
  expect(hasty([past(life({ until: 20_100 }))], [{ ...early, at: 20_000 }])).toEqual([])
})

it('finds a process that ends with 1 for another reason, or for none, while its line is cut', () => {
  const words = ['error: unexpected error, please report it: TypeError']
  expect(found(past(life({ words }), [0, 70_000]), [FENCING])).toBe(1)
  expect(found(past(life({ words: [] }), [0, 70_000]), [FENCING])).toBe(1)
})

it('excuses a start that cannot reach the database, only while there is trouble', () => {
  const start = life({ ready: false, words: [UNREACHABLE] })
  expect(found(past(start, [30_000, 31_000]))).toBe(0)
  expect(found(past(start, [0, 9000]))).toBe(1)
  expect(found(past(start))).toBe(1)
})

it('finds a process that runs and ends because it cannot reach the database', () => {
  expect(found(past(life({ words: [UNREACHABLE] }), [0, 70_000]))).toBe(1)
})

it('excuses a stop that takes too long, only while there is trouble', () => {
  const stop = life({ stoppedAt: 30_000, words: ['killed by timeout (25000ms)'] })
  expect(found(past(stop, [20_000, 40_000]))).toBe(0)
  expect(found(past(stop, [20_000, 29_000]))).toBe(1)
})

it('excuses a SIGTERM that ends a process which was fenced, and no other signal', () => {
  const stopped = { code: null, stoppedAt: 59_900, words: [FENCED] }
  expect(found(past(life({ ...stopped, signal: 'SIGTERM' })), [FENCING])).toBe(0)
  expect(found(past(life({ ...stopped, signal: 'SIGTERM', words: [] })), [FENCING])).toBe(1)
  expect(found(past(life({ code: null, signal: 'SIGSEGV' })), [FENCING])).toBe(1)
})

it('learns from the database who was fenced, and after which silence', async () => {
  const url = await createDatabase()
  const identity = { identify: () => 'machine/7/123', isGone: () => false }
  await openProcess(url, undefined, { process: identity })
  const world = { books: new PostgresBooks(url), tally: new Tally() }
  await watchWrites(world)
  const admin = await adminOf(url)
  expect(await fencingsOf(world)).toEqual([])
  await admin.query(`UPDATE sidecar.replicas SET seen = seen - interval '20 s'`)
  await admin.query(
    'SELECT sidecar.take_over(id, extract(epoch FROM seen)::text::numeric) FROM sidecar.replicas',
  )
  const [fencing, ...more] = await fencingsOf(world)
  expect(more).toEqual([])
  expect(fencing).toMatchObject({ pid: 7, startedAt: expect.any(Number) as number })
  expect(fencing?.silent).toBeGreaterThanOrEqual(20_000)
})
