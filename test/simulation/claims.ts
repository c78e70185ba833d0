import type { Store } from '../../src/core/store.ts'

/**
 * The claims that are not released. Another worker may claim again before the release is reported.
 */
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
  const { log, hints, lanes, calls } = store
  return {
    ...store,
    log: {
      ...log,
      async commit(batch, patience) {
        const committed = await log.commit(batch, patience)
        for (const { lane, claimed } of committed.lanes) if (claimed) held.take(`lane ${lane.id}`)
        for (const { callId, lease } of committed.newCalls) if (lease !== null) held.take(`call ${callId}`)
        return committed
      },
    },
    hints: {
      ...hints,
      async claim(room, except) {
        const dirty = await hints.claim(room, except)
        for (const { sessionId } of dirty) held.take(`hint ${sessionId}`)
        return dirty
      },
      async retry(hint, after) {
        await hints.retry(hint, after)
        held.give(`hint ${hint.sessionId}`)
      },
      async defer(hint, after) {
        await hints.defer(hint, after)
        held.give(`hint ${hint.sessionId}`)
      },
      async release(hint) {
        await hints.release(hint)
        held.give(`hint ${hint.sessionId}`)
      },
      async finishSweep(hint) {
        await hints.finishSweep(hint)
        held.give('hint null')
      },
    },
    lanes: {
      ...lanes,
      async claim(room) {
        const claimed = await lanes.claim(room)
        for (const { id } of claimed) held.take(`lane ${id}`)
        return claimed
      },
      async retry(lane, after) {
        await lanes.retry(lane, after)
        held.give(`lane ${lane.id}`)
      },
      async release(lane) {
        await lanes.release(lane)
        held.give(`lane ${lane.id}`)
      },
    },
    calls: {
      ...calls,
      async claim(room) {
        const claimed = await calls.claim(room)
        for (const { call } of claimed) held.take(`call ${call.callId}`)
        return claimed
      },
      async release(callId, lease) {
        await calls.release(callId, lease)
        held.give(`call ${callId}`)
      },
    },
  }
}
