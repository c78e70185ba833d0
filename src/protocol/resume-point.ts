import { isBefore } from '../core/seq.ts'

/**
 * A replay of 1,500 frames stops after 200 of them and names `from_seq`. Only 150 were kept when the connection
 * ended, so the next one begins after the 150th. If the service names an earlier seq than the last that was kept, the
 * next connection begins at the earlier one: a repeated frame is recognised, a missing one would be lost.
 */
export class ResumePoint {
  #stoppedAt: string | null = null
  /** The value of `#stoppedAt` at the request of the last connection. */
  #asked: string | null = null

  /** The position from which the rest of a stopped replay must still be requested. */
  get stoppedAt(): string | null {
    return this.#stoppedAt
  }

  /** The replay stopped at its limit; `seq` is its `from_seq`. */
  stopAt(seq: string): void {
    this.#stoppedAt = seq
  }

  /**
   * @param last the last seq that was kept; null: none was
   * @param first the first seq to request; null: no limit
   * @returns the cursor of the next connection; null: live frames only
   */
  next(last: string | null, first: string | null = null): string | null {
    const stopped = this.#stoppedAt
    this.#asked = stopped
    this.#stoppedAt = null
    if (last === null || stopped === null) return last ?? stopped
    if (!isBefore(stopped, last)) return last
    return first !== null && isBefore(stopped, first) ? first : stopped
  }

  /** The connection was refused without data: the rest must still be requested. */
  refused(): void {
    this.#stoppedAt = this.#asked
  }

  forget(): void {
    this.#stoppedAt = null
  }
}
