import { writeJson } from './verbatim.ts'

export { parseJson } from './exact.ts'
export { writeJson } from './verbatim.ts'

/** Members of what the service gives that the sidecar passes on and never looks at: what an agent calls functions with. */
export const PASSED_ON = { verbatim: ['arguments', 'args'] }

/** What JSON can hold. */
export type Json = null | boolean | number | string | Json[] | JsonObject
export type JsonObject = { [key: string]: Json | undefined }

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What `parseJson` gave, as JSON.parse would have given it: for functions of a program, to which a number is a number. */
export function withPlainNumbers(value: Json | undefined): Json | undefined {
  return value === undefined ? undefined : (JSON.parse(writeJson(value)) as Json)
}

/** A text with something in it. One with half a surrogate pair is none: no database, path or header can carry it. */
export function stringOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.isWellFormed() ? value : null
}

export function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}
