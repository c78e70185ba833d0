const LAST = '{{last}}'

/** `value` with every `{{last}}` inside its strings replaced by the output of the last call. */
export function fillIn<T>(value: T, last: string): T
export function fillIn(value: unknown, last: string): unknown {
  if (typeof value === 'string') return value.replaceAll(LAST, () => last)
  if (Array.isArray(value)) return value.map((entry: unknown) => fillIn(entry, last))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, fillIn<unknown>(entry, last)]))
}
