import { writeJson } from './verbatim.ts'

export { parseJson } from './exact.ts'
export { writeJson } from './verbatim.ts'

/** Members that the sidecar passes on and never reads: the arguments of function calls. */
export const PASSED_ON = { verbatim: ['arguments', 'args'] }

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | JsonObject
export type JsonObject = { [key: string]: Json | undefined }

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Converts a value of `parseJson` to the value that `JSON.parse` would return, for a user's functions, which expect
 * plain numbers.
 */
export function withPlainNumbers(value: Json | undefined): Json | undefined {
  return value === undefined ? undefined : (JSON.parse(writeJson(value)) as Json)
}

/** A non-empty text. A text with half a surrogate pair is invalid: no database, path or header can hold it. */
export function stringOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.isWellFormed() ? value : null
}

export function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}
