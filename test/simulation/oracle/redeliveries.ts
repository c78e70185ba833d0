import type { Sqlite } from '../../../src/sidecar/store/sqlite/open.ts'
import type { Receipt } from './watch.ts'

interface DeliveryRow {
  id: string
  handler: string
  status: number
}

const [PENDING, DEAD] = [0, 2]

/** What an operator has delivered again: what was heard before counts no more. */
export class Redeliveries {
  readonly #receipts: ReadonlyMap<string, Receipt>
  readonly #deliveries
  /** Handlers whose past facts are being made pending, and how often at once. */
  readonly #underWay = new Map<string, number>()

  constructor(db: Sqlite, receipts: ReadonlyMap<string, Receipt>) {
    this.#receipts = receipts
    this.#deliveries = db.prepare<[], DeliveryRow>(
      `SELECT f.id, h.name AS handler, d.status FROM deliveries d
       JOIN facts f ON f.pos = d.fact_pos JOIN handlers h ON h.number = d.handler`,
    )
  }

  has(handler: string): boolean {
    return this.#underWay.has(handler)
  }

  /** @returns what to call once all are pending, or their maker is no more; only the first time counts. */
  begin(handlers: readonly string[]): () => void {
    for (const handler of handlers) this.#underWay.set(handler, (this.#underWay.get(handler) ?? 0) + 1)
    const dead = new Set(this.#keysOf(DEAD))
    let underWay = true
    return () => {
      if (!underWay) return
      underWay = false
      for (const handler of handlers) {
        const left = (this.#underWay.get(handler) ?? 1) - 1
        if (left === 0) this.#underWay.delete(handler)
        else this.#underWay.set(handler, left)
      }
      for (const [key, receipt] of this.#receipts) {
        if (!handlers.some((handler) => key.startsWith(`${handler} `))) continue
        receipt.knownTaken = null
        receipt.unread = null
        receipt.notBefore = 0
        receipt.next = 0
      }
      // A dead letter that came back has all of its attempts anew.
      for (const key of this.#keysOf(PENDING)) {
        const receipt = this.#receipts.get(key)
        if (receipt === undefined || !dead.has(key)) continue
        receipt.sent = 0
        receipt.verdictDead = false
      }
    }
  }

  #keysOf(status: number): string[] {
    return this.#deliveries
      .all()
      .flatMap((row) => (row.status === status ? [`${row.handler} ${row.id}`] : []))
  }
}
