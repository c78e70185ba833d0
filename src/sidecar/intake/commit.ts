import type { Bus } from '../../core/bus.ts'
import type { Call } from '../../core/call.ts'
import type { CallStep } from '../../core/call-machine.ts'
import type { Fact } from '../../core/fact.ts'
import type { Hint } from '../../core/hint.ts'
import type { Batch, Committed, Reading, Store } from '../../core/store.ts'
import type { HintFilter } from './ownership.ts'

/** The only way to commit facts. */
export interface Intake {
  commit(batch: Batch): Promise<Committed>
  hint(hints: readonly Hint[]): Promise<void>
  /** @returns false when another read of the session was stored first: read again. */
  reading(reading: Reading): Promise<boolean>
  /** @returns the ids of the calls that were new. */
  addCalls(calls: readonly Call[]): Promise<ReadonlySet<string>>
  /**
   * @returns false when the transition table does not allow the step from the stored state; `hints` are stored anyway.
   */
  step(step: CallStep & { facts?: readonly Fact[]; hints?: readonly Hint[] }): Promise<boolean>
}

export function createIntake(options: { store: Pick<Store, 'log'>; bus: Bus; filter: HintFilter }): Intake {
  const { store, bus, filter } = options

  const commit = async (batch: Batch): Promise<Committed> => {
    const { hints } = batch
    if (hints !== undefined) {
      const { possible, certain } = filter.active
        ? await filter.sort(hints)
        : { possible: hints, certain: hints }
      bus.hinted(possible, certain)
    }
    const committed = await store.log.commit(filter.active ? { ...batch, scoped: true } : batch)
    bus.publish(committed, batch)
    return committed
  }

  return {
    commit,
    async hint(hints) {
      await commit({ hints })
    },
    async reading(reading) {
      const { stale } = await commit({ readings: [reading] })
      return stale.length === 0
    },
    async addCalls(newCalls) {
      const committed = await commit({ newCalls })
      return new Set(committed.newCalls)
    },
    async step({ hints, ...step }) {
      const { refused } = await commit(hints === undefined ? { calls: [step] } : { calls: [step], hints })
      return refused.length === 0
    },
  }
}
