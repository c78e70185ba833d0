/** "3 facts", "1 fact". */
export function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`
}

/** Milliseconds in a readable form: `4 ms`, `1.2 s`, `5 min`, `3 h`, `2 d`. */
export function span(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`
  if (ms < 172_800_000) return `${Math.round(ms / 3_600_000)} h`
  return `${Math.round(ms / 86_400_000)} d`
}

/** `212 KiB`, `77.4 MiB`, `1.2 GiB`. */
export function size(bytes: number): string {
  if (bytes < 2 ** 20) return `${Math.ceil(bytes / 2 ** 10)} KiB`
  return bytes < 2 ** 30 ? `${(bytes / 2 ** 20).toFixed(1)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`
}

/** `12 s ago`, `in 4 min`; empty without a time. */
export function relative(at: number | null, now: number): string {
  if (at === null) return ''
  return at > now ? `in ${span(at - now)}` : `${span(now - at)} ago`
}

/** `2026-11-21 05:00:00`, in the time zone of the machine. */
export function stamp(at: number | null): string {
  if (at === null) return ''
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return ''
  const two = (number: number): string => String(number).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(date)}`
}

function clock(date: Date): string {
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':')
}
