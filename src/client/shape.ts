import type { Open } from '../std/open.ts'
import { Malformed, objectIn } from '../core/wire.ts'

/**
 * Parsers of the service's answers: each checks one value and gives it its type. A field without a
 * value may be null or absent in an answer; it is parsed as null. Unknown fields are kept.
 */
export type Reader<T> = (value: unknown, what: string) => T

/** Unknown fields. */
export interface Fields {
  [field: string]: unknown
}

export type Shaped<Spec extends Record<string, Reader<unknown>>> = {
  [Name in keyof Spec]: ReturnType<Spec[Name]>
} & Fields

export const text: Reader<string> = (value, what) => {
  if (typeof value === 'string') return value
  throw new Malformed(`${what} is not a text`)
}

export const number: Reader<number> = (value, what) => {
  if (typeof value === 'number') return value
  throw new Malformed(`${what} is not a number`)
}

export const flag: Reader<boolean> = (value, what) => {
  if (typeof value === 'boolean') return value
  throw new Malformed(`${what} is neither true nor false`)
}

export const anything: Reader<unknown> = (value) => value

/** An id: text that is not empty. */
export const id: Reader<string> = (value, what) => {
  if (typeof value === 'string' && value !== '') return value
  throw new Malformed(`${what} is missing`)
}

/** A word of an open set. */
export function word<Word extends string>(): Reader<Open<Word>> {
  return text
}

export function orNull<T>(read: Reader<T>): Reader<T | null> {
  return (value, what) => (value === undefined || value === null ? null : read(value, what))
}

/** A list, which the service may omit when it is empty. */
export function listOf<T>(read: Reader<T>): Reader<T[]> {
  return (value, what) => {
    if (value === undefined || value === null) return []
    if (!Array.isArray(value)) throw new Malformed(`${what} is not a list`)
    return value.map((entry: unknown, index) => read(entry, `entry ${index} of ${what}`))
  }
}

/** Texts by name, which the service may omit when there are none. */
export const texts: Reader<Record<string, string>> = (value, what) => {
  if (value === undefined || value === null) return {}
  return Object.fromEntries(
    Object.entries(objectIn(value, what)).map(([name, one]) => [name, text(one, `${name} of ${what}`)]),
  )
}

export function object<Spec extends Record<string, Reader<unknown>>>(spec: Spec): Reader<Shaped<Spec>> {
  const known = Object.entries(spec)
  return (value, what) => {
    const given = objectIn(value, what)
    const read: Fields = { ...given }
    for (const [name, reader] of known) read[name] = reader(given[name], `${name} of ${what}`)
    return read as Shaped<Spec>
  }
}

/** Like `object`, for an object that may be omitted: then each field is null or empty. */
export function part<Spec extends Record<string, Reader<unknown>>>(spec: Spec): Reader<Shaped<Spec>> {
  const read = object(spec)
  return (value, what) => read(value ?? {}, what)
}

/** For an entry that is read and sent again: omitted fields stay omitted, so the entry is sent back unchanged. */
export function entry<
  Spec extends Record<string, Reader<unknown>>,
  Optional extends Record<string, Reader<unknown>>,
>(
  spec: Spec,
  optional: Optional,
): Reader<Shaped<Spec> & { [Name in keyof Optional]?: ReturnType<Optional[Name]> }> {
  const read = object(spec)
  const rest = Object.entries(optional)
  return (value, what) => {
    const given: Fields = read(value, what)
    for (const [name, reader] of rest) {
      if (given[name] === undefined || given[name] === null) delete given[name]
      else given[name] = reader(given[name], `${name} of ${what}`)
    }
    return given as Shaped<Spec> & { [Name in keyof Optional]?: ReturnType<Optional[Name]> }
  }
}
