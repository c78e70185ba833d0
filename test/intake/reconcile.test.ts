import { expect, it } from 'vitest'
import type { Service } from '../../src/core/ports.ts'
import type { Store } from '../../src/core/store.ts'
import type { SessionReader } from '../../src/intake/read.ts'
import { createReconciler } from '../../src/intake/reconcile.ts'
import type { Sweep } from '../../src/intake/sweep.ts'
import { VirtualClock } from '../support/clock.ts'
import { keepingLog, longestWaits } from '../support/ports.ts'

it('a first look that never comes to the end of the list is tried again with back-off', async () => {
  const clock = new VirtualClock()
  const looks: number[] = []
  const told: boolean[] = []
  const service: Pick<Service, 'authorized' | 'onAuthorization'> = {
    authorized: () => true,
    onAuthorization: () => undefined,
  }
  const sweep: Pick<Sweep, 'looked' | 'firstLook'> = {
    looked: async () => false,
    firstLook: async () => void looks.push(clock.steady()),
  }
  const reconciler = createReconciler({
    service: service as Service,
    store: {} as Store,
    reader: {} as SessionReader,
    sweep: sweep as Sweep,
    clock,
    random: longestWaits,
    log: keepingLog(),
    traceOf: (key) => ({ given: undefined, key }),
    onFirstLook: (done) => told.push(done),
  })
  const began = clock.steady()
  reconciler.start()
  await clock.advance(4000)
  await reconciler.stop(0)
  expect(looks.map((at) => at - began)).toEqual([0, 500, 1500, 3500])
  expect(told).toEqual([false, false, false, false])
})
