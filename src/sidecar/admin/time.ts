import { Type, type Static } from 'typebox'
import { Problem } from './problem.ts'

export const TimeGiven = Type.Union([Type.Integer({ minimum: 0 }), Type.String()], {
  description: 'Milliseconds since the epoch, or ISO 8601.',
  examples: ['2026-11-21T05:00:00Z'],
})

/** Milliseconds since the epoch. @throws {Problem} naming `field`. */
export function timeOf(field: string, given: Static<typeof TimeGiven>): number {
  if (typeof given === 'number') return given
  const time = /^\d{4}-\d{2}-\d{2}/.test(given) ? Date.parse(given) : NaN
  if (Number.isNaN(time)) {
    throw new Problem('invalid_request', `${field}: a point in time such as 2026-11-21T05:00:00Z is expected`)
  }
  return time
}
