import { ServiceError } from '../../core/errors.ts'

/** A page that fitted lets the next one have so many times as many entries. */
const GROWTH = 1.25

/**
 * How many entries of each list fit into an answer. A session is created with up to 16 MiB (rule LIM-02), so a page of
 * sessions can be longer than an answer may be. A shorter page is then requested, and the rest of the list is not lost.
 */
export class PageRoom {
  readonly #most = new Map<string, number>()

  /**
   * Asks for a page of `wanted` entries, and for fewer when so many are too long.
   * @throws what `ask` throws, and when a single entry is too long.
   */
  async ask<T>(list: string, wanted: number, ask: (limit: number) => Promise<T>): Promise<T> {
    let limit = Math.min(wanted, this.#most.get(list) ?? wanted)
    for (;;) {
      try {
        const page = await ask(limit)
        if (limit < wanted) this.#most.set(list, Math.ceil(limit * GROWTH))
        return page
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'answer_too_large' || limit <= 1) throw error
        limit = Math.floor(limit / 2)
        this.#most.set(list, limit)
      }
    }
  }
}
