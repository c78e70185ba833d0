import type { Ajv } from 'ajv'
import { isObject, type Json } from '../../std/json.ts'

type Dialect = 'draft-07' | '2020-12'
type Validator = Pick<Ajv, 'validateSchema' | 'errors'>

/** By dialect. A validator takes 20 ms to make, and there may be 200 tools. */
const validators = new Map<Dialect, Promise<Validator>>()

/**
 * What is wrong with the JSON Schema that a tool declares; null: nothing. It counts as 2020-12 unless it names
 * draft-07, as in library/schema.ts. The validator is loaded only when a tool declares a schema, so that a start
 * without tools is faster.
 */
export async function schemaFault(schema: Json | undefined): Promise<string | null> {
  if (!isObject(schema)) return null
  const draft07 = typeof schema.$schema === 'string' && schema.$schema.includes('draft-07')
  const validator = await validatorOf(draft07 ? 'draft-07' : '2020-12')
  try {
    if (validator.validateSchema(schema) === true) return null
  } catch {
    return 'names a $schema that is not known'
  }
  const [first] = validator.errors ?? []
  const where = (first?.instancePath ?? '').slice(1).replaceAll('/', '.')
  return `is not a JSON Schema: ${where === '' ? '' : `${where} `}${first?.message ?? ''}`
}

function validatorOf(dialect: Dialect): Promise<Validator> {
  let validator = validators.get(dialect)
  if (validator === undefined) {
    validator = makeValidator(dialect)
    validators.set(dialect, validator)
  }
  return validator
}

async function makeValidator(dialect: Dialect): Promise<Validator> {
  const options = { allErrors: true }
  if (dialect === 'draft-07') return new (await import('ajv')).Ajv(options)
  return new (await import('ajv/dist/2020.js')).Ajv2020(options)
}
