import { expect, it } from 'vitest'
import { ServiceError } from '../../src/core/errors.ts'
import type { Hint } from '../../src/core/hint.ts'
import type { Service } from '../../src/core/ports.ts'
import { allShards } from '../../src/core/shards.ts'
import type { Store } from '../../src/core/store.ts'
import type { Reconciler, ReconcilerOptions, SessionReader } from '../../src/sidecar/intake/reconcile.ts'
import { Bus } from '../../src/core/bus.ts'
import { createReconciler } from '../../src/sidecar/intake/reconcile.ts'
import type { Sweep } from '../../src/sidecar/intake/sweep.ts'
import { openStore } from '../store/database.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog, longestWaits } from '../support/ports.ts'

const AUTHORIZED: Pick<Service, 'authorized' | 'onAuthorization'> = {
  authorized: () => true,
  onAuthorization: () => undefined,
}

/** A reconciler of an authorized service, whose waits are the longest possible. */
function reconcilerOn(
  parts: Partial<ReconcilerOptions> & Pick<ReconcilerOptions, 'store' | 'sweep' | 'clock'>,
): Reconciler {
  return createReconciler({
    service: AUTHORIZED as Service,
    reader: {} as SessionReader,
    random: longestWaits,
    log: keepingLog(),
    traceOf: (key) => ({ given: undefined, key }),
    bus: new Bus(),
    ...parts,
  })
}

// Both sessions were read as fast as the service answered, and two lines of the log said so each time.
it('sessions whose facts cannot be stored are read rarely, one at a time', async () => {
  const clock = new VirtualClock()
  const log = keepingLog()
  const { store } = await openStore({ clock })
  const hints = ['ses_1', 'ses_2', 'ses_3'].map((sessionId): Hint => ({
    sessionId,
    channel: 'webhook',
    at: 1,
    scope: 'session',
    delay: 0,
  }))
  await store.log.commit({ hints })
  let full = true
  const read: string[] = []
  const reader: Pick<SessionReader, 'read'> = {
    async read(entry, sessionId) {
      read.push(sessionId)
      if (full) throw new Error('the disk is full')
      await store.hints.retry(entry, clock.steady() + 600_000)
      return false
    },
  }
  const service: Pick<Service, keyof typeof AUTHORIZED | 'listSessions'> = {
    ...AUTHORIZED,
    listSessions: () => Promise.reject(new Error('no list')),
  }
  const sweep: Pick<Sweep, 'looked'> = { looked: async () => true }
  const reconciler = reconcilerOn({
    service: service as Service,
    store: {
      ...store,
      hints: {
        ...store.hints,
        retry: (...asked) =>
          full ? Promise.reject(new Error('the disk is full')) : store.hints.retry(...asked),
      },
    },
    reader: reader as SessionReader,
    sweep: sweep as Sweep,
    clock,
    log,
  })
  reconciler.start()
  await clock.advance(60_000)
  expect(read.length).toBeLessThan(20)
  expect(log.lines.length).toBeLessThan(8)

  full = false
  read.length = 0
  await clock.advance(6000)
  expect(new Set(read)).toEqual(new Set(['ses_1', 'ses_2', 'ses_3']))
  await reconciler.stop(0)
})

it('a first read that never reaches the end of the list is retried with backoff', async () => {
  const clock = new VirtualClock()
  const looks: number[] = []
  const results: boolean[] = []
  const bus = new Bus()
  bus.subscribe({ looked: (done) => results.push(done) })
  const sweep: Pick<Sweep, 'looked' | 'firstLook'> = {
    looked: async () => false,
    firstLook: async () => void looks.push(clock.steady()),
  }
  const reconciler = reconcilerOn({
    store: { shards: allShards() } as Store,
    sweep: sweep as Sweep,
    clock,
    bus,
  })
  const began = clock.steady()
  reconciler.start()
  await clock.advance(4000)
  await reconciler.stop(0)
  expect(looks.map((at) => at - began)).toEqual([0, 500, 1500, 3500])
  expect(results).toEqual([false, false, false, false])
})

// Kubernetes restarted the other replicas every two minutes while the service was unreachable.
it('a process that does not lead counts as started although the leader cannot read the list', async () => {
  const clock = new VirtualClock()
  const results: [at: number, done: boolean][] = []
  const bus = new Bus()
  const began = clock.steady()
  bus.subscribe({ looked: (done) => results.push([clock.steady() - began, done]) })
  let isComplete = false
  const sweep: Pick<Sweep, 'looked'> = { looked: async () => isComplete }
  const { store } = await openStore({ clock })
  const reconciler = reconcilerOn({
    store: { ...store, shards: { ...allShards(), leads: false } },
    sweep: sweep as Sweep,
    clock,
    bus,
  })
  reconciler.start()
  await clock.advance(60_000)
  expect(results).toEqual([[30_000, false]])
  isComplete = true
  await clock.advance(1000)
  expect(results).toEqual([
    [30_000, false],
    [60_500, true],
  ])
  await reconciler.stop(0)
})

it('sessions whose reads hang leave places to all others, to a failed read and to a failed sweep', async () => {
  const clock = new VirtualClock()
  const { store } = await openStore({ clock })
  const hint = (sessionId: string | null): Hint => ({
    sessionId,
    channel: 'poll',
    at: 1,
    scope: 'session',
    delay: 0,
  })
  const reads: { sessionId: string | null; at: number }[] = []
  const failing = new Set<string | null>()
  let mostHung = 0
  let hung = 0
  const failOnce = (sessionId: string | null): void => {
    reads.push({ sessionId, at: clock.steady() })
    if (!failing.delete(sessionId)) return
    throw new ServiceError({ code: 'internal_error', status: 500, message: 'failed' })
  }
  const reader: Pick<SessionReader, 'read'> = {
    async read(entry, sessionId) {
      if (sessionId.startsWith('ses_hung')) {
        mostHung = Math.max(mostHung, ++hung)
        await new Promise<void>((resolve) => clock.after(30_000, resolve))
        hung--
        throw new ServiceError({ code: 'no_reply', status: 0, message: 'no answer' })
      }
      failOnce(sessionId)
      await store.hints.retry(entry, 86_400_000)
      return true
    },
  }
  const sweep: Pick<Sweep, 'looked' | 'run'> = {
    looked: async () => true,
    run: async () => failOnce(null),
  }
  const reconciler = reconcilerOn({
    service: {
      ...AUTHORIZED,
      listSessions: () => Promise.reject(new Error('no list')),
    } as Pick<Service, 'listSessions'> as Service,
    store,
    reader: reader as SessionReader,
    sweep: sweep as Sweep,
    clock,
  })
  await store.log.commit({ hints: Array.from({ length: 40 }, (_, index) => hint(`ses_hung_${index}`)) })
  reconciler.start()
  await clock.advance(150_000)
  mostHung = 0
  for (let round = 0; round < 10; round++) {
    const sessionId = `ses_${round}`
    const begun = clock.steady()
    failing.add(sessionId).add(null)
    await store.log.commit({ hints: [hint(sessionId), hint(null), hint(`ses_fine_${round}`)] })
    reconciler.hintsAdded()
    await clock.advance(3000)
    const of = (id: string | null): number[] =>
      reads.filter((read) => read.sessionId === id && read.at >= begun).map(({ at }) => at - begun)
    expect([of(`ses_fine_${round}`), of(sessionId), of(null)]).toEqual([[0], [0, 500], [0, 500]])
    await clock.advance(20_000)
  }
  expect(mostHung).toBe(4)
  const stopped = reconciler.stop(0)
  await clock.advance(0)
  await stopped
})
