import { isDiskRefusing } from '../database.ts'
import type { Asked } from '../service/api.ts'
import type { Life } from '../life.ts'
import type { Simulation } from '../simulation.ts'
import type { Fault } from '../../checker/history.ts'
import type { WatchParts } from './watch.ts'

type Parts = Pick<WatchParts, 'db' | 'state' | 'trace' | 'sites'>

/** Facts, callbacks, tools and requests of sessions that are another sidecar's (config/README.md, Several sidecars). */
export class Belonging {
  readonly #parts: Parts
  /** By session: answers that showed it to be foreign. */
  readonly #reads = new Map<string, number>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  #isForeign(sessionId: string | null | undefined): boolean {
    return this.#parts.state.sessions.get(sessionId ?? '')?.fate === 'foreign'
  }

  #broken(message: string): void {
    this.#parts.trace.broken('scope', message)
  }

  delivered(handler: string, type: string, sessionId: string | null): void {
    if (this.#isForeign(sessionId)) this.#broken(`${handler} got ${type} of ${sessionId}, which is foreign`)
  }

  ran(callId: string): void {
    const { sessionId } = this.#parts.state.calls.get(callId) ?? {}
    if (this.#isForeign(sessionId)) this.#broken(`${callId} of ${sessionId} runs, which is foreign`)
  }

  /**
   * One read shows the owner of a session. A fault may lose it, which costs at most one more read; while the disk
   * refuses writes, each trial of the circuit breaker costs one.
   */
  served(_life: Life, { operation, ids }: Asked, status: number): void {
    const { session_id: sessionId = '' } = ids
    if (!this.#isForeign(sessionId)) return
    if (operation !== 'read session') this.#broken(`${operation} of ${sessionId}, which is foreign`)
    if (status !== 200 || isDiskRefusing(this.#parts.db)) return
    const reads = (this.#reads.get(sessionId) ?? 0) + 1
    this.#reads.set(sessionId, reads)
    const { fired, second } = this.#parts.sites
    // Each of two processes may read it: what the first one read, it may not write.
    if (reads > 1 + fired.length + Number(second))
      this.#broken(`${sessionId}, which is foreign, was read ${reads} times; ${fired.length} faults`)
  }

  /** Without hints there is no reason to read it alone. */
  get read(): string | undefined {
    return this.#reads.keys().next().value
  }
}

/**
 * When idle: the stored state of foreign sessions, and the work that waits for reads of sessions.
 */
export function belongingFaults({ state, db, scenario, watch }: Simulation): Fault | null {
  if ((scenario.scope ?? null) === null) return null
  const broken = (message: string): Fault => ({ invariant: 'scope', message })
  const held = db.prepare<[], string>('SELECT session_id FROM held_frames').pluck().get()
  if (held !== undefined) return broken(`frames of ${held} are still held`)
  const pending = db
    .prepare<[], string>("SELECT session_id FROM session_owners WHERE owner = 'pending'")
    .pluck()
    .get()
  if (pending !== undefined) return broken(`${pending} came into the scope and was not read`)
  const { stream, webhook } = scenario.channels
  if (!stream && !webhook && watch.belonging.read !== undefined)
    return broken(`${watch.belonging.read}, which is foreign, was read though nothing hinted at it`)
  const row = db.prepare<[{ id: string }], string>(
    `SELECT id FROM sessions WHERE id = @id UNION ALL SELECT id FROM all_facts WHERE session_id = @id
     UNION ALL SELECT call_id FROM all_calls WHERE session_id = @id UNION ALL SELECT session_id FROM hints WHERE session_id = @id`,
  )
  for (const { id, fate } of state.sessions.values()) {
    const found = fate === 'foreign' ? row.pluck().get({ id }) : undefined
    if (found !== undefined) return broken(`${found} of ${id} is in the store, which is foreign`)
  }
  return null
}
