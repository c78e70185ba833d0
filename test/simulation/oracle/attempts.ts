import type { Sqlite } from '../../../src/sidecar/store/sqlite/open.ts'
import type { Trace } from '../trace.ts'
import type { Receipt } from './watch.ts'

const CUT = 'the sidecar stopped before an answer'

/** The numbers that a handler sees: an attempt that a crash cut, and that was written down, has a number of its own. */
export class Attempts {
  readonly #trace: Trace
  readonly #receipts: ReadonlyMap<string, Receipt>
  readonly #begun
  readonly #begunOf
  readonly #log

  constructor(parts: { db: Sqlite; trace: Trace }, receipts: ReadonlyMap<string, Receipt>) {
    this.#trace = parts.trace
    this.#receipts = receipts
    this.#begun = parts.db
      .prepare<[], string>(
        `SELECT h.name || ' ' || f.id FROM begun b JOIN facts f ON f.pos = b.fact_pos
         JOIN handlers h ON h.number = b.handler`,
      )
      .pluck()
    this.#begunOf = parts.db.prepare<[], { key: string; session: string | null }>(
      `SELECT h.name || ' ' || f.id AS key, f.session_id AS session FROM begun b JOIN facts f ON f.pos = b.fact_pos
       JOIN handlers h ON h.number = b.handler`,
    )
    this.#log = parts.db
      .prepare<[string], string>(
        `SELECT d.log FROM all_deliveries d JOIN all_facts f ON f.pos = d.fact_pos JOIN handlers h ON h.number = d.handler
         WHERE h.name || ' ' || f.id = ?`,
      )
      .pluck()
  }

  /** What is under way. */
  begun(): readonly string[] {
    return this.#begun.all()
  }

  /** A life has taken the store, on which the last one left these attempts. */
  cut(begun: readonly string[]): void {
    for (const key of begun) {
      const receipt = this.#receipts.get(key)
      if (receipt !== undefined) receipt.next = receipt.number + 1
    }
  }

  /** What is under way for some sessions is another process's now. */
  taken(isTheirs: (sessionId: string | null) => boolean): void {
    for (const { key, session } of this.#begunOf.all()) if (isTheirs(session)) this.cut([key])
  }

  /** A further attempt goes out. */
  check(key: string, receipt: Receipt, number: number): void {
    if (number < receipt.next)
      this.#trace.broken('attempt', `${key} is tried as attempt ${number}, which a crash cut before`)
    if (receipt.next > 0 && !(this.#log.get(key) ?? '').includes(CUT))
      this.#trace.broken('attempt', `${key} does not show the attempt that a crash cut`)
    receipt.number = number
  }
}
