import type { Store } from '../../src/core/store.ts'

/** What is claimed and not given back. Somebody may take again before we hear that it was given back. */
export class Claims {
  readonly #counts = new Map<string, number>()

  take(key: string): void {
    this.#change(key, 1)
  }

  give(key: string): void {
    this.#change(key, -1)
  }

  #change(key: string, by: number): void {
    const count = (this.#counts.get(key) ?? 0) + by
    if (count === 0) this.#counts.delete(key)
    else this.#counts.set(key, count)
  }

  has(key: string): boolean {
    return (this.#counts.get(key) ?? 0) > 0
  }

  get open(): string[] {
    return [...this.#counts.keys()]
  }
}

/** The store as one life sees it; what it claims there and does not give back stays in `held`. */
export function noteClaims(store: Store, held: Claims): Store {
  return {
    ...store,
    async commit(batch) {
      const committed = await store.commit(batch)
      for (const { lane, claimed } of committed.lanes) if (claimed) held.take(`lane ${lane.id}`)
      for (const { callId, state } of batch.newCalls ?? [])
        if (state === 'running' && committed.newCalls.includes(callId)) held.take(`call ${callId}`)
      return committed
    },
    async claimHints(limit, now) {
      const dirty = await store.claimHints(limit, now)
      for (const { sessionId } of dirty) held.take(`hint ${sessionId}`)
      return dirty
    },
    async releaseHint(sessionId, dueAt) {
      await store.releaseHint(sessionId, dueAt)
      held.give(`hint ${sessionId}`)
    },
    async deferHint(sessionId, dueAt) {
      await store.deferHint(sessionId, dueAt)
      held.give(`hint ${sessionId}`)
    },
    doneHint(sessionId) {
      store.doneHint(sessionId)
      held.give(`hint ${sessionId}`)
    },
    async finishSweep(generation) {
      await store.finishSweep(generation)
      held.give('hint null')
    },
    async claimLanes(handler, limit, now) {
      const lanes = await store.claimLanes(handler, limit, now)
      for (const { id } of lanes) held.take(`lane ${id}`)
      return lanes
    },
    async releaseLane(lane, dueAt) {
      await store.releaseLane(lane, dueAt)
      held.give(`lane ${lane.id}`)
    },
    async claimCalls(room, now) {
      const calls = await store.claimCalls(room, now)
      for (const { callId } of calls) held.take(`call ${callId}`)
      return calls
    },
    releaseCall(callId) {
      store.releaseCall(callId)
      held.give(`call ${callId}`)
    },
  }
}
