import { Bus } from '../../src/core/bus.ts'
import type { Store } from '../../src/core/store.ts'
import { createHintFilter, createOwnership, type Ownership } from '../../src/sidecar/intake/ownership.ts'
import { VirtualClock } from './clock.ts'
import { keepingLog } from './ports.ts'

/** Without a scope: every session is ours, and the store is asked nothing. */
export function everySession(store: Store): Ownership {
  return createOwnership({
    scope: null,
    store,
    commit: () => Promise.reject(new Error('without a scope nothing is noted')),
    clock: new VirtualClock(),
    log: keepingLog(),
    filter: createHintFilter(store, null),
    bus: new Bus(),
  })
}
