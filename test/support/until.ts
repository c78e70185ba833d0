import { setTimeout as pause } from 'node:timers/promises'

/** Longer than any wait that a test is right to expect, milliseconds. */
const PATIENCE = 40_000

/** Looks again and again until `find` gives something; fails with `what` when it never does. */
export async function until<T>(
  what: string,
  find: () => T | undefined | null | false | Promise<T | undefined | null | false>,
  patience = PATIENCE,
): Promise<T> {
  const limit = performance.now() + patience
  for (;;) {
    const found = await find()
    if (found !== undefined && found !== null && found !== false) return found
    if (performance.now() > limit) throw new Error(`after ${patience} ms there is still no ${what}`)
    await pause(5)
  }
}
