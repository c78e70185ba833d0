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
  addCalls(calls: readonly Call[]): Promise<void>
  /**
   * @returns false when the transition table does not allow the step from the stored state; `hints` are stored anyway.
   */
  step(
    step: CallStep & { facts?: readonly Fact[]; hints?: readonly Hint[]; patience?: number },
  ): Promise<boolean>
}

/**
 * A frame that announces a call is committed up to this time later, milliseconds, to wait for the read that it caused.
 * If the service is near enough to answer by then, frame and call share one commit.
 */
const CALL_NEAR = 2

export function createIntake(options: {
  store: Pick<Store, 'log' | 'shards'>
  bus: Bus
  filter: HintFilter
  /** This sidecar runs function tools. */
  hasTools: boolean
}): Intake {
  const { store, bus, filter, hasTools } = options

  const commit = async (batch: Batch, given = 0): Promise<Committed> => {
    const { hints } = batch
    let patience = given
    if (hints !== undefined) {
      const { possible, certain } = filter.active
        ? await filter.sort(hints)
        : { possible: hints, certain: hints }
      bus.report((to) => to.hinted?.(possible, certain))
      const isNear = (one: Hint): boolean => isCall(one) && store.shards.owns(one.sessionId)
      if (hasTools && batch.cursor !== undefined && certain.some(isNear)) patience = CALL_NEAR
    }
    const committed = await store.log.commit(filter.active ? { ...batch, scoped: true } : batch, patience)
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
      await commit({ newCalls })
    },
    async step({ hints, patience = 0, ...step }) {
      const calls = [step]
      const { refused } = await commit(hints === undefined ? { calls } : { calls, hints }, patience)
      return refused.length === 0
    },
  }
}

/** Whether a hint announces an action, which may be a call, and is read at once. */
function isCall({ delay, subject }: Hint): boolean {
  return delay === 0 && subject?.startsWith('action.required/') === true
}
