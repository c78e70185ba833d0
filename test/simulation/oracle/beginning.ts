import { STREAM_OPENED } from '../../../src/sidecar/source/cursor.ts'
import type { Life } from '../life.ts'
import type { WatchParts } from './watch.ts'

/** The clocks of service and sidecar are known to a second or so, and what was opened is noted as much earlier, milliseconds. */
export const ABOUT = 3000

/**
 * With `start_from: now`, the beginning of new events is never recorded later than it was, because
 * events in between would be lost, nor earlier than the answers allow, because older events are not
 * new.
 */
export class Beginning {
  /** The earliest that was noted, by the service's clock. */
  earliest = Infinity
  readonly #parts: Pick<WatchParts, 'agenda' | 'trace' | 'state'>
  /** The time from which a process must report everything, by the service's clock. */
  readonly #from = new Map<Life, number>()

  constructor(parts: Pick<WatchParts, 'agenda' | 'trace' | 'state'>) {
    this.#parts = parts
  }

  /** Live frames were asked for, or are there now; from then on a life gets them, or has to look for what it missed. */
  live(life: Life): void {
    this.#from.set(life, this.#parts.state.now())
  }

  noted(life: Life, checkpoint: string, value: string | null): void {
    if (checkpoint !== STREAM_OPENED) return
    if (value === null) return void this.#from.delete(life)
    const { trace, state, agenda } = this.#parts
    const at = Number(value)
    const late = at - (this.#from.get(life) ?? state.now())
    if (late > 0) trace.broken('I1', `the stream's beginning is noted ${Math.round(late)} ms too late`)
    const early = life.startedAt + (state.now() - agenda.now) - life.slowest - at
    if (early > ABOUT)
      trace.broken('old', `the stream's beginning is noted ${Math.round(early)} ms too early`)
    this.earliest = Math.min(this.earliest, at)
  }
}
