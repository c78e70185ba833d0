/** `npm run test:full`, which CI runs: every crash point, every seed, every random document. `npm test` plays a part of them. */
export const FULL = process.env['FULL'] === '1'

/** The part of repetitions that a person waits for. */
const PART = 8

/** How often a test repeats itself with other input. */
export function repeats(times: number): number {
  return FULL ? times : Math.ceil(times / PART)
}
