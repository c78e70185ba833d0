import type { Agenda } from '../agenda.ts'
import type { Sites } from '../sites.ts'
import type { Trace } from '../trace.ts'

/** A slot is free so long after its client is gone, milliseconds. */
const LATE = 4500
/** What a refusal asks for, seconds. */
const RETRY_AFTER = 5

export interface SlotsParts {
  agenda: Agenda
  sites: Sites
  trace: Trace
  /** Streams at once. */
  most: number
}

/** The stream slots of the token. A row of replays that stop needs the same one again and again. */
export class Slots {
  readonly #parts: SlotsParts
  #held = 0
  #freeAt: number[] = []
  /** Opens refused since replays began to stop, and the faults that had struck by then. */
  #row: { refused: number; faults: number } | null = null

  constructor(parts: SlotsParts) {
    this.#parts = parts
  }

  take(): void {
    this.#held++
  }

  /** A connection is over; `stopped`: the rest of its replay will be asked for. */
  leave(stopped: boolean): void {
    this.#held--
    this.#freeAt.push(this.#parts.agenda.now + LATE)
    if (!stopped) this.#row = null
    else this.#row ??= { refused: 0, faults: this.#faults }
  }

  /** Another process knows nothing of the row. */
  forget(): void {
    this.#row = null
  }

  /**
   * Seconds to wait, when there is no slot; null when there is one. An open that a crashed process
   * had sent may arrive while the next one replays: its refusal gives the next one no information
   * (`lives` false).
   */
  refusal(lives: boolean): number | null {
    const { agenda, most, trace } = this.#parts
    this.#freeAt = this.#freeAt.filter((at) => at > agenda.now)
    if (this.#held + this.#freeAt.length < most) return null
    // Without other faults, the first refusal decides for all that follow.
    if (lives && this.#row !== null && this.#row.faults === this.#faults && ++this.#row.refused > 1)
      trace.broken('I9', `a stream was opened ${this.#row.refused} times too soon after stopped replays`)
    return RETRY_AFTER
  }

  get #faults(): number {
    return this.#parts.sites.fired.filter(({ fault }) => fault !== 'replay_stop').length
  }
}
