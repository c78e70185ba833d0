const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
]

/** Milliseconds in at most two units: `2 h 5 min`. */
export function duration(ms) {
  if (!Number.isFinite(ms)) return '–'
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  const first = UNITS.findIndex(([, size]) => ms >= size)
  const [unit, size] = UNITS[first]
  const next = UNITS[first + 1]
  const rest = next === undefined ? 0 : Math.floor((ms % size) / next[1])
  return `${Math.floor(ms / size)} ${unit}${rest === 0 ? '' : ` ${rest} ${next[0]}`}`
}

/** How long ago, in whole seconds; at least one. */
export function age(at, now) {
  return duration(Math.max(1000, Math.floor((now - at) / 1000) * 1000)).replace('.0 s', ' s')
}

const pad = (n) => String(n).padStart(2, '0')

/** Local time. Each row of a list has one, and `toLocaleTimeString` would take longer than the rest of the row. */
export function clock(at) {
  const time = new Date(at)
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map(pad).join(':')
}

export function date(at) {
  const day = new Date(at)
  return `${day.getFullYear()}-${pad(day.getMonth() + 1)}-${pad(day.getDate())} ${clock(at)}`
}

/** The time of day; if `at` is not today, with the date. */
export function when(at) {
  return date(at).startsWith(date(Date.now()).slice(0, 10)) ? clock(at) : date(at)
}

export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`
}

export function bytes(n) {
  if (n < 1024) return `${n} B`
  return n < 1024 * 1024 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / 1024 / 1024).toFixed(1)} MiB`
}

/**
 * Text of agents on one line. Characters that change the direction of text, or are invisible, are
 * shown as their numbers.
 */
export function plain(text) {
  return visible(written(text)).replaceAll(/\s+/g, ' ').trim()
}

export function visible(text) {
  return text.replaceAll(
    // oxlint-disable-next-line no-control-regex -- these are what must not pass
    /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFEFF]/g,
    (character) => `\\u${character.codePointAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** Whether the time is in the range of a date. */
export function isTime(at) {
  return typeof at === 'number' && Number.isFinite(new Date(at).getTime())
}

/** Any value of the service as text. `String` throws for an object such as `{ toString: 1 }`. */
export function written(value) {
  if (value === null || value === undefined) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
