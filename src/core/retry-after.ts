/** Whoever asks for more than a day is held to a day, milliseconds. */
const MOST = 86_400_000

/** A `Retry-After` header, seconds or an HTTP date, in milliseconds from `now` (wall clock); 0 when there is none. */
export function retryAfter(header: string | undefined, now: number): number {
  if (header === undefined) return 0
  if (/^\d+$/.test(header)) return Math.min(MOST, Number(header) * 1000)
  const date = Date.parse(header)
  return Number.isNaN(date) ? 0 : Math.min(MOST, Math.max(0, date - now))
}
