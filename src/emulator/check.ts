import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import type { Static, TSchema } from 'typebox'
import { BoundedMap } from '../std/bounded-map.ts'
import { nearest } from './nearest.ts'
import { invalid } from './refusal.ts'

const options = { allErrors: true, verbose: true, discriminator: true, strict: false } as const
/** Each emulator makes its own schemas, which are mostly those of the last one: the most that are kept by their text. */
const KEPT = 500

/** Compiled schemas, found by the object and by the text. */
class Validators {
  readonly #ajv: Ajv
  readonly #bySchema = new WeakMap<object, ValidateFunction>()
  readonly #byText = new BoundedMap<string, ValidateFunction>(KEPT)

  constructor(ajv: Ajv) {
    this.#ajv = ajv
  }

  of(schema: TSchema): ValidateFunction {
    const known = this.#bySchema.get(schema)
    if (known !== undefined) return known
    const text = JSON.stringify(schema)
    const check = this.#byText.get(text) ?? this.#compile(schema)
    this.#byText.set(text, check)
    this.#bySchema.set(schema, check)
    return check
  }

  #compile(schema: TSchema): ValidateFunction {
    const check = this.#ajv.compile(schema)
    // The compiler keeps every schema that it ever got, also those of closed emulators.
    this.#ajv.removeSchema(schema)
    return check
  }
}

const exact = new Validators(new Ajv(options))
/** All values of a query string are text: numbers and booleans are parsed from the text. */
const coercing = new Validators(new Ajv({ ...options, coerceTypes: true }))

/**
 * Returns a body that its schema accepts.
 * @throws {Refusal} 400 `invalid_request` that names the wrong field. For an unknown field it names the nearest one
 * and all accepted ones.
 */
export function readBody<T extends TSchema>(schema: T, value: unknown): Static<T> {
  const check = exact.of(schema)
  if (check(value)) return value as Static<T>
  throw invalid(explain(check.errors ?? [], 'field'))
}

/** Like `readBody`, for a query string. */
export function readQuery<T extends TSchema>(schema: T, value: Record<string, unknown>): Static<T> {
  const check = coercing.of(schema)
  const given: unknown = { ...value }
  if (check(given)) return given as Static<T>
  throw invalid(explain(check.errors ?? [], 'query parameter'))
}

/** The faults of a value, one sentence each, or an empty list. */
export function faultsOf(schema: TSchema, value: unknown): string[] {
  const check = exact.of(schema)
  return check(value) ? [] : (check.errors ?? []).map((error) => sentence(error, 'field'))
}

function explain(errors: ErrorObject[], noun: string): string {
  // An unknown name is the most likely cause, so it is reported first.
  const ordered = [...errors].sort((a, b) => rank(a) - rank(b))
  return [...new Set(ordered.map((error) => sentence(error, noun)))].slice(0, 5).join('; ')
}

function rank(error: ErrorObject): number {
  return error.keyword === 'additionalProperties' ? 0 : error.keyword === 'oneOf' ? 2 : 1
}

function sentence(error: ErrorObject, noun: string): string {
  const place = error.instancePath.slice(1).replaceAll('/', '.')
  if (error.keyword === 'additionalProperties') {
    return unknownName(String(error.params['additionalProperty']), acceptedBy(error), place, noun)
  }
  if (error.keyword === 'enum') {
    return `${place || noun} must be one of ${JSON.stringify(error.params['allowedValues'])}`
  }
  if (error.keyword === 'discriminator') {
    return `${place || noun} needs a known ${String(error.params['tag'])}`
  }
  return `${place === '' ? `the ${noun === 'field' ? 'body' : 'query'}` : place} ${error.message ?? 'is not valid'}`
}

function acceptedBy(error: ErrorObject): string[] {
  const parent: unknown = error.parentSchema
  if (typeof parent !== 'object' || parent === null || !('properties' in parent)) return []
  return Object.keys(parent.properties ?? {})
}

/** The sentence for a name that the service does not read (rules GEN-24 to GEN-26). */
function unknownName(name: string, accepted: string[], place: string, noun: string): string {
  const close = nearest(name, accepted)
  const where = place === '' ? '' : ` in ${place}`
  const hint = close === undefined ? '' : `; did you mean ${JSON.stringify(close)}?`
  const list = accepted.length === 0 ? 'none is accepted' : `accepted: ${accepted.join(', ')}`
  return `unknown ${noun} ${JSON.stringify(name)}${where}${hint} (${list})`
}
