import { isObject } from '../std/json.ts'

/** An expected kind of value, and its name for people. */
export interface Kind {
  readonly name: string
  fits(value: unknown): boolean
}

export const string = kind('a string', (value) => typeof value === 'string')
export const number = kind('a number', (value) => typeof value === 'number')
export const boolean = kind('a boolean', (value) => typeof value === 'boolean')
export const object = kind('an object', isObject)
export const array = kind('an array', Array.isArray)
export const strings = kind(
  'an array of strings',
  (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
)
export const present = kind('there', (value) => value !== undefined)
export const nothing = kind('null or absent', (value) => value === undefined || value === null)
export const uuid = kind(
  'a UUID',
  (value) =>
    typeof value === 'string' &&
    /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(value),
)

/** Times before 2015 are probably seconds; those after 2200 are probably microseconds. */
const [EARLIEST, LATEST] = [1_420_070_400_000, 7_258_118_400_000]

export const milliseconds = kind(
  'a number of milliseconds since the epoch',
  (value) => typeof value === 'number' && value > EARLIEST && value < LATEST,
)

/** An object whose values are all strings. */
export const labels = kind(
  'an object of strings',
  (value) => isObject(value) && Object.values(value).every((one) => typeof one === 'string'),
)

export function kind(name: string, fits: (value: unknown) => boolean): Kind {
  return { name, fits }
}

export function is(expected: unknown): Kind {
  const text = JSON.stringify(expected)
  return kind(text ?? 'absent', (value) => JSON.stringify(value) === text)
}

export function oneOf(...words: readonly unknown[]): Kind {
  return kind(`one of ${words.map((word) => JSON.stringify(word)).join(', ')}`, (value) =>
    words.includes(value),
  )
}

export function beginning(prefix: string): Kind {
  return kind(
    `a string that begins with ${prefix}`,
    (value) => typeof value === 'string' && value.startsWith(prefix),
  )
}

export function orNull(inner: Kind): Kind {
  return kind(`${inner.name} or null`, (value) => value === null || inner.fits(value))
}

/** For fields that a deployment may omit when they have no value. */
export function ifAny(inner: Kind): Kind {
  return kind(
    `${inner.name}, null or absent`,
    (value) => value === undefined || value === null || inner.fits(value),
  )
}

/** The value at `a.b.0.c`, undefined when there is none. */
export function at(value: unknown, path: string): unknown {
  let found = value
  for (const key of path.split('.')) {
    if (key === '') continue
    if (Array.isArray(found)) found = (found as unknown[])[Number(key)]
    else if (isObject(found) && Object.hasOwn(found, key)) found = found[key]
    else return undefined
  }
  return found
}

/** The entries of a list; none when the value is not a list. */
export function rowsOf(list: unknown): unknown[] {
  const data = Array.isArray(list) ? (list as unknown[]) : at(list, 'data')
  return Array.isArray(data) ? (data as unknown[]) : []
}

export function textAt(value: unknown, path: string): string {
  const found = at(value, path)
  return typeof found === 'string' ? found : ''
}

/** A value as JSON. */
export function written(value: unknown): string {
  return JSON.stringify(value) ?? 'absent'
}
