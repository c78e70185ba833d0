import type { Lane } from '../../../core/delivery.ts'
import type { Clock, Timer } from '../../../std/ports.ts'
import type { Part } from './committer.ts'
import type { Sqlite } from './open.ts'
import type { Ownership } from './owner.ts'

/**
 * An attempt that is under way for so long is written down, milliseconds. Nearly every attempt has ended and is stored by
 * then.
 */
const LONG = 50
/** The error of an attempt that a crash cut. */
const CUT = 'the sidecar stopped before an answer'

/** A transaction that need not reach the disk; `effect` runs after it. */
type Write = (run: () => void, effect?: () => void) => Promise<unknown>

/** The attempt that a lane makes. */
interface Begun {
  handler: number
  positions: readonly number[]
  /** Our wall clock. */
  at: number
  /** Steady milliseconds. */
  since: number
}

/**
 * A handler got three POSTs of one fact, the sidecar was killed during the first two, and no attempt was recorded. So attempts
 * that take long are written down, with whatever commit comes, or with one of their own that waits for no disk. What ends
 * earlier costs nothing.
 */
export class BegunAttempts {
  readonly #clock: Clock
  readonly #add
  readonly #remove
  readonly #write: Write
  /** By lane, the oldest first; a lane makes one attempt at a time. */
  readonly #unwritten = new Map<number, Begun>()
  readonly #written = new Set<string>()
  #staged: [lane: number, begun: Begun][] = []
  #timer: Timer | null = null

  constructor(db: Sqlite, clock: Clock, write: Write) {
    this.#clock = clock
    this.#write = write
    this.#add = db.prepare<[number, number, number]>('INSERT OR IGNORE INTO begun VALUES (?, ?, ?)')
    this.#remove = db.prepare<[number, number]>('DELETE FROM begun WHERE fact_pos = ? AND handler = ?')
  }

  begin(lane: Lane, handler: number, positions: readonly number[]): void {
    const since = this.#clock.steady()
    // To the end, also where the lane's last attempt has ended and is not stored yet.
    this.#unwritten.delete(lane.id)
    this.#unwritten.set(lane.id, { handler, positions, at: this.#clock.now(), since })
    this.#arm(since)
  }

  /** It has an outcome, which is stored soon. */
  end(lane: Lane): void {
    this.#unwritten.delete(lane.id)
  }

  /** It ended: inside the transaction that stores how. `ended` follows the commit. */
  store(lane: Lane, handler: number, pos: number): void {
    this.#forget(lane, pos)
    if (this.#written.size > 0 && this.#written.has(keyOf(handler, pos))) this.#remove.run(pos, handler)
  }

  ended(handler: number, pos: number): void {
    if (this.#written.size > 0) this.#written.delete(keyOf(handler, pos))
  }

  /** It ended, and nothing of it is stored. */
  drop(lane: Lane, handler: number, positions: readonly number[]): void {
    for (const pos of positions) this.#forget(lane, pos)
    if (!positions.some((pos) => this.#written.has(keyOf(handler, pos)))) return
    const remove = () => positions.forEach((pos) => this.store(lane, handler, pos))
    // A row that stays is shown as a cut attempt after the next start.
    this.#write(remove, () => positions.forEach((pos) => this.ended(handler, pos))).catch(() => undefined)
  }

  #forget(lane: Lane, pos: number): void {
    if (this.#unwritten.get(lane.id)?.positions.includes(pos) === true) this.#unwritten.delete(lane.id)
  }

  /** What takes part in every transaction: this, the owner's check before it, and `note`. */
  partWith(ownership: Ownership, note: () => void): Part {
    return {
      confirm: () => ownership.confirm(),
      note: () => {
        note()
        this.#stage()
      },
      committed: () => this.#committed(),
    }
  }

  #stage(): void {
    this.#staged = []
    if (this.#unwritten.size === 0) return
    const before = this.#clock.steady() - LONG
    for (const [lane, begun] of this.#unwritten) {
      if (begun.since > before) return
      for (const pos of begun.positions) this.#add.run(pos, begun.handler, begun.at)
      this.#staged.push([lane, begun])
    }
  }

  #committed(): void {
    for (const [lane, { handler, positions }] of this.#staged) {
      this.#unwritten.delete(lane)
      for (const pos of positions) this.#written.add(keyOf(handler, pos))
    }
    this.#staged = []
  }

  stop(): void {
    this.#timer?.cancel()
  }

  /** One timer for all. A transaction that fails is not tried again before something else begins. */
  #arm(since: number): void {
    if (this.#timer !== null) return
    this.#timer = this.#clock.after(Math.max(1, since + LONG - this.#clock.steady()), () => {
      this.#timer = null
      this.#writeLong().catch(() => undefined)
    })
  }

  async #writeLong(): Promise<void> {
    if (this.#oldest() <= this.#clock.steady() - LONG) await this.#write(() => undefined)
    const next = this.#oldest()
    if (next < Infinity) this.#arm(next)
  }

  #oldest(): number {
    const [oldest] = this.#unwritten.values()
    return oldest?.since ?? Infinity
  }
}

function keyOf(handler: number, pos: number): string {
  return `${handler}/${pos}`
}

/** What the last process left here was cut: it is shown as an attempt, and counts for the number alone. */
export function recoverBegun(db: Sqlite, ownership: Ownership): void {
  const left = db
    .prepare<[], { fact_pos: number; handler: number; at: number }>('SELECT fact_pos, handler, at FROM begun')
    .all()
  if (left.length === 0) return
  const cut = db.prepare<[string, string, number, number]>(
    `UPDATE deliveries SET cut = cut + 1, log = CASE log WHEN '' THEN ? ELSE log || ',' || ? END
     WHERE fact_pos = ? AND handler = ? AND status = 0`,
  )
  db.transaction(() => {
    ownership.confirm()
    for (const { fact_pos: pos, handler, at } of left) {
      const entry = JSON.stringify({ at, error: CUT, ms: 0 })
      cut.run(entry, entry, pos, handler)
    }
    db.prepare('DELETE FROM begun').run()
  }).immediate()
}
