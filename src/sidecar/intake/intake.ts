import type { Call, CallStep } from '../../core/call.ts'
import type { Fact, StoredFact } from '../../core/fact.ts'
import type { Hint } from '../../core/hint.ts'
import { isObject, numberOf } from '../../std/json.ts'
import type { Observer } from '../../core/observer.ts'
import type { Session } from '../../core/resource.ts'
import type { Batch, Committed, Reading, Store } from '../../core/store.ts'
import type { Ownership } from './ownership.ts'
import { callWithoutTool } from './without-tool.ts'

/** The parts that have work after a commit. A wake makes it prompt; each has a timer that makes it certain. */
export interface Wakes {
  /** Hints are about to be written; `ours`: those about sessions that are known to be ours. */
  dirty(hints: readonly Hint[], ours: readonly Hint[]): void
  lanes(committed: Committed): void
  hints(): void
  calls(): void
  /** A session was read. */
  session(session: Session): void
}

/** The one door: everything that becomes a fact is committed here, and nowhere else. */
export interface Intake {
  commit(batch: Batch): Promise<Committed>
  hint(hints: readonly Hint[]): Promise<void>
  /** @returns false when somebody else wrote first: read again. */
  reading(reading: Reading): Promise<boolean>
  /** @returns the ids of those that were not known. */
  addCalls(calls: readonly Call[]): Promise<ReadonlySet<string>>
  /** @returns false when the call is not in a state that the step starts from. */
  step(step: CallStep & { facts?: readonly Fact[] }): Promise<boolean>
}

export function createIntake(options: {
  store: Store
  observer: Observer
  wake: Wakes
  ownership: () => Ownership
  /** Milliseconds, the service's clock less ours. */
  clockOffset: () => number
  /** Names of the configured tools. */
  tools: ReadonlySet<string>
}): Intake {
  const { store, observer, wake } = options

  /** With a scope; without one a commit costs nothing more. */
  const commitScoped = async (batch: Batch, ownership: Ownership): Promise<Committed> => {
    if (batch.hints !== undefined) {
      const { possible, certain } = await ownership.sortHints(batch.hints)
      wake.dirty(possible, certain)
    }
    const committed = await store.log.commit({ ...batch, scoped: true })
    ownership.committed(batch.owners ?? [], committed.held)
    if (committed.unattributed !== undefined) observer.framesUnattributed(committed.unattributed)
    return committed
  }

  const commitWhole = (batch: Batch): Promise<Committed> => {
    if (batch.hints !== undefined) wake.dirty(batch.hints, batch.hints)
    return store.log.commit(batch)
  }

  const commit = async (batch: Batch): Promise<Committed> => {
    const ownership = options.ownership()
    const committed = await (ownership.active ? commitScoped(batch, ownership) : commitWhole(batch))
    // An answer unparks an agent, a callback only informs: what leads to answers goes first.
    if (committed.newCalls.length > 0) wake.calls()
    if (committed.hinted) wake.hints()
    for (const fact of committed.facts) {
      observer.fact(fact, lagOf(fact, options.clockOffset()))
      const call = callWithoutTool(fact, options.tools)
      if (call !== null) observer.callWithoutTool(call)
    }
    for (const { channel, type, at, factAt } of committed.sightings) {
      observer.sighting({ channel, type, lag: Math.max(0, at - factAt) / 1000 })
    }
    for (const { sessionId, session } of batch.readings ?? []) {
      if (session !== null && !committed.stale.includes(sessionId)) wake.session(session)
    }
    if (committed.lanes.length > 0) wake.lanes(committed)
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
    async step(step) {
      const { refused } = await commit({ calls: [step] })
      return refused.length === 0
    },
  }
}

/** Seconds from the moment the resource gives for a fact until we had it; null where it gives none. */
function lagOf(fact: StoredFact, offset: number): number | null {
  if (fact.family === 'transcript') return null
  const body: unknown = JSON.parse(fact.body)
  if (!isObject(body)) return null
  const happened = happenedAt(fact.type, body)
  return happened === null ? null : Math.max(0, fact.at + offset - happened) / 1000
}

function happenedAt(type: string, body: Record<string, unknown>): number | null {
  const { turn, action, session } = body
  if (type === 'turn.started' && isObject(turn)) return numberOf(turn.started_at)
  if (type.startsWith('turn.') && type !== 'turn.settled' && isObject(turn))
    return numberOf(turn.completed_at)
  if (type === 'action.required' && isObject(action)) return numberOf(action.created_at)
  if (type === 'session.created' && isObject(session)) return numberOf(session.created_at)
  if (type.startsWith('session.') && type !== 'session.deleted' && isObject(session))
    return numberOf(session.updated_at)
  return null
}
