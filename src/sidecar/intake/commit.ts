import type { Bus } from '../../core/bus.ts'
import type { Call } from '../../core/call.ts'
import type { CallStep } from '../../core/call-machine.ts'
import type { Fact } from '../../core/fact.ts'
import type { Hint } from '../../core/hint.ts'
import type { Batch, Committed, Reading, Store } from '../../core/store.ts'
import { pause } from '../../std/pause.ts'
import type { Clock } from '../../std/ports.ts'
import type { HintFilter } from './ownership.ts'

/** The only way to commit facts. */
export interface Intake {
  /** `more`: further frames wait for this commit. */
  commit(batch: Batch, more?: AbortSignal): Promise<Committed>
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
 * A frame that announces a call waits this long before its commit, milliseconds, or until further frames arrive. The call
 * is committed without it, and a fast tool has answered by then. Otherwise the frame's commit and its callback would delay
 * that answer.
 */
const AFTER_CALL = 5
/**
 * If the prefetch has found the call by then, and the call is accepted, the session is read this much later,
 * milliseconds. If its tool and the rest of its turn are fast, one read shows all.
 */
const READ_LATER = 100

/**
 * Concurrent prefetches; with more to read, the list may be cheaper. If a commit announces more calls, none is prefetched,
 * so none is accepted before the commit, and it need not wait.
 */
export const PREFETCHED = 2

/** Nothing waits for the commit. */
const NEVER = new AbortController().signal

export function createIntake(options: {
  store: Pick<Store, 'log' | 'shards' | 'calls'>
  bus: Bus
  filter: HintFilter
  clock: Clock
  /** This sidecar runs function tools. */
  hasTools: boolean
}): Intake {
  const { store, bus, filter, clock, hasTools } = options

  /** Puts off the reads of sessions, if every call that their hints announce is accepted. */
  const putOff = async (hints: readonly Hint[]): Promise<Hint[]> => {
    const accepted = new Map<string | null, boolean>()
    for (const hint of hints) {
      if (!isCall(hint)) continue
      const known = (await store.calls.get(callIdOf(hint))) !== null
      accepted.set(hint.sessionId, known && accepted.get(hint.sessionId) !== false)
    }
    return hints.map((hint) =>
      accepted.get(hint.sessionId) === true ? { ...hint, delay: Math.max(hint.delay, READ_LATER) } : hint,
    )
  }

  const commit = async (batch: Batch, more = NEVER, patience = 0): Promise<Committed> => {
    const { hints } = batch
    let stored = batch
    if (hints !== undefined) {
      const { possible, certain } = filter.active
        ? await filter.sort(hints)
        : { possible: hints, certain: hints }
      bus.report((to) => to.hinted?.(possible, certain))
      const calls = certain.filter((one) => isCall(one) && store.shards.owns(one.sessionId)).length
      if (hasTools && batch.cursor !== undefined && calls > 0 && calls <= PREFETCHED) {
        await pause(clock, AFTER_CALL, more)
        stored = { ...batch, hints: await putOff(hints) }
      }
    }
    const committed = await store.log.commit(filter.active ? { ...stored, scoped: true } : stored, patience)
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
      const { refused } = await commit(hints === undefined ? { calls } : { calls, hints }, NEVER, patience)
      return refused.length === 0
    },
  }
}

const REQUIRED = 'action.required/'

/** Whether a hint announces an action, which may be a call, and is read at once. */
function isCall({ delay, subject }: Hint): boolean {
  return delay === 0 && subject?.startsWith(REQUIRED) === true
}

function callIdOf({ subject }: Hint): string {
  return subject?.slice(REQUIRED.length) ?? ''
}
