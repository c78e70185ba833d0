/**
 * The longest `Retry-After` that is obeyed, milliseconds: who asks for more than a day does not mean it (a date with a wrong
 * year, milliseconds for seconds), and one request a day asks too much of no service.
 */
export const RETRY_AFTER_MAX = 86_400_000

/**
 * A `Retry-After` header, seconds or an HTTP date, in milliseconds; null when there is none or it says nothing. `now` is
 * the wall clock that a date is to be read by.
 */
export function retryAfter(header: string | undefined, now: number): number | null {
  const value = header?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(value)) return Math.min(RETRY_AFTER_MAX, Math.ceil(Number(value) * 1000))
  // Date.parse finds a date in nearly anything with a number in it.
  const date = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*, /.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? null : Math.min(RETRY_AFTER_MAX, Math.max(0, date - now))
}
