/**
 * The longest `Retry-After` that is respected, milliseconds: more than a day is a mistake (a date
 * with a wrong year, milliseconds for seconds), and one request a day overloads no service.
 */
export const RETRY_AFTER_MAX = 86_400_000

/**
 * A `Retry-After` header, seconds or an HTTP date, in milliseconds; null when there is none or it cannot be read. `now`:
 * the wall clock that a date is compared with.
 */
export function retryAfter(header: string | undefined, now: number): number | null {
  const value = header?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(value)) return Math.min(RETRY_AFTER_MAX, Math.ceil(Number(value) * 1000))
  // Date.parse accepts nearly any text with a number.
  const date = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*, /.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? null : Math.min(RETRY_AFTER_MAX, Math.max(0, date - now))
}
