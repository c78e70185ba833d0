import { parseDuration } from '../../std/duration.ts'
import { isObject, type Json, type JsonObject } from '../../std/json.ts'
import { nearest } from '../../std/nearest.ts'
import { checks } from './checks.ts'
import type { Path } from './fault.ts'
import { settings } from './settings.ts'
import { propertyOf, type Shape } from './shape.ts'
import type { Blame } from './tree.ts'

/**
 * Checks `tree` against the schema, fills in the defaults in place, and reports every fault. No JSON Schema library is
 * used: the schema has a dozen keywords (`Shape`), and compiling it takes a hundred times as long as the one check that
 * follows. A test compares the verdict with that of such a library.
 */
export function judge(tree: Json | undefined, blame: Blame): void {
  judgeValue(tree, settings, [], blame)
}

function judgeValue(value: Json | undefined, shape: Shape, path: Path, blame: Blame): void {
  const fault = faultOf(value, shape)
  if (fault !== null) blame(path, fault)
  if (isObject(value)) judgeKeys(value, shape, path, blame)
  if (!Array.isArray(value) || shape.items === undefined) return
  for (const [index, item] of value.entries()) judgeValue(item, shape.items, [...path, index], blame)
}

function judgeKeys(value: JsonObject, shape: Shape, path: Path, blame: Blame): void {
  for (const [key, { default: preset }] of Object.entries(shape.properties ?? {})) {
    if (preset !== undefined && value[key] === undefined) value[key] = structuredClone(preset)
  }
  for (const key of shape.required ?? []) {
    if (value[key] === undefined) blame([...path, key], 'is required')
  }
  for (const [key, item] of Object.entries(value)) {
    const of = propertyOf(shape, key) ?? shape.additionalProperties
    if (of === false) blame([...path, key], unknownKey(key, shape), 'key')
    else if (of !== undefined && item !== undefined) judgeValue(item, of, [...path, key], blame)
  }
}

/** What is wrong with the value itself, not with what it holds. */
function faultOf(value: Json | undefined, shape: Shape): string | null {
  const { type, anyOf } = shape
  const says = (fault: string): string => `must be ${shape.errorMessage ?? fault}${shown(value, shape)}`
  if (type !== undefined && !isOf(type, value)) return says(typeName(type))
  if (anyOf !== undefined && !anyOf.some((one) => fits(value, one)))
    return says(listed(anyOf.map((one) => one.const)))
  if (shape.const !== undefined && value !== shape.const) return says(listed([shape.const]))
  if (value !== undefined && shape.enum?.includes(value) === false) return says(listed(shape.enum))
  if (typeof value === 'string') return textFault(value, shape, says)
  if (typeof value === 'number') {
    if (value < (shape.minimum ?? -Infinity)) return says(`at least ${shape.minimum}`)
    return value > (shape.maximum ?? Infinity) ? says(`at most ${shape.maximum}`) : null
  }
  return sizeFault(value, shape)
}

function textFault(text: string, shape: Shape, says: (fault: string) => string): string | null {
  const { minLength = 0, maxLength = Infinity, pattern, format, durationRange } = shape
  if (text.length < minLength) return says(`${minLength} character or longer`)
  // `length` counts UTF-16 units, and an emoji has two; `maxLength` counts characters.
  if (text.length > maxLength && Array.from(text).length > maxLength)
    return `may have at most ${maxLength} characters`
  if (pattern !== undefined && !new RegExp(pattern, 'u').test(text))
    return says(`a text that matches ${pattern}`)
  const fault = format === undefined ? null : checks[format]?.(text)
  if (fault !== null && fault !== undefined) return fault
  if (durationRange === undefined) return null
  const [least, most] = durationRange
  const ms = parseDuration(text) ?? 0
  const within = ms >= (parseDuration(least) ?? 0) && ms <= (parseDuration(most) ?? Infinity)
  return within ? null : `must be between ${least} and ${most}${shown(text, shape)}`
}

function sizeFault(value: Json | undefined, shape: Shape): string | null {
  const { minItems = 0, maxItems = Infinity, maxProperties = Infinity } = shape
  if (Array.isArray(value)) {
    if (value.length < minItems) return `needs at least ${minItems} entry`
    return value.length > maxItems ? `may have at most ${maxItems} entries` : null
  }
  const excess = isObject(value) && Object.keys(value).length > maxProperties
  return excess ? `may have at most ${maxProperties} keys` : null
}

function fits(value: Json | undefined, shape: Shape): boolean {
  let good = true
  judgeValue(value, shape, [], () => {
    good = false
  })
  return good
}

function isOf(type: string, value: Json | undefined): boolean {
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  return type === 'integer' ? Number.isInteger(value) : typeof value === type
}

function unknownKey(key: string, shape: Shape): string {
  const known = Object.keys(shape.properties ?? {})
  const guess = nearest(key, known)
  return guess === null
    ? `unknown key; known here: ${known.join(', ')}`
    : `unknown key, did you mean "${guess}"?`
}

/**
 * The most characters of a value that a message repeats: the message also has the position, where the whole value is.
 */
const SHOWN = 40

/** The value as found, unless it is secret, structured, or an address (which may hold a password). */
function shown(value: Json | undefined, shape: Shape): string {
  if (shape.writeOnly === true || typeof value === 'object' || value === undefined) return ''
  const text = JSON.stringify(value)
  if (text.includes('://')) return ''
  return `, not ${text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}`
}

function typeName(type: string): string {
  if (type === 'string') return 'a text (in quotes, if it looks like a number)'
  if (type === 'boolean') return 'true or false'
  if (type === 'integer') return 'a whole number'
  if (type === 'array') return 'a list'
  return type === 'object' ? 'a map of keys' : `a ${type}`
}

function listed(values: readonly unknown[]): string {
  const words = values.map(String)
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
