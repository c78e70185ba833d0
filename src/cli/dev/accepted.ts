import { isObject, parseJson } from '../../std/json.ts'
import type { Observer } from '../../core/observer.ts'
import type { Received } from './compare.ts'

/**
 * The facts that the sidecar made, and those of them that the user's own app accepted, as the sidecar reported it.
 */
export class Accepted {
  readonly #made = new Map<string, Received['event']>()
  readonly events = new Map<string, Received>()

  readonly observer: Partial<Observer> = {
    fact: ({ id, type, sessionId, seq, body }) => {
      const parsed = parseJson(body)
      const data = { ...(isObject(parsed) ? parsed : {}), ...(seq === null ? {} : { seq }) }
      this.#made.set(id, { type, session_id: sessionId, data })
    },
    callback: ({ fact: { id }, outcome }) => {
      const event = this.#made.get(id)
      if (outcome !== 'delivered' || event === undefined) return
      this.events.set(id, { event, times: (this.events.get(id)?.times ?? 0) + 1 })
    },
  }

  get facts(): number {
    return this.#made.size
  }

  get delivered(): number {
    return this.events.size
  }
}
