import { Ajv, type AnySchema, type ErrorObject, type ValidateFunction } from 'ajv'
import { guess } from '../../std/nearest.ts'
import { Problem, type Fault } from './problem.ts'

const COMPILERS = {
  // Every value in a query is text: `limit=20` becomes the number 20, because the schema expects a number.
  query: new Ajv({ coerceTypes: true, useDefaults: true, allErrors: true }),
  // JSON has types: in a body, the text "20" is refused where the schema expects a number.
  body: new Ajv({ useDefaults: true, allErrors: true, allowUnionTypes: true }),
}

type Part = keyof typeof COMPILERS

const CALLED: Record<Part, string> = { query: 'query parameter', body: 'field' }

export function compile(schema: AnySchema): ValidateFunction {
  return COMPILERS.query.compile(schema)
}

/**
 * Checks a value and fills in defaults; `error` has every fault. A schema is compiled at its first value, because
 * compiling all of them would delay the very first request.
 */
export function createCheck(schema: object, httpPart: string | undefined) {
  const part = httpPart === 'body' ? 'body' : 'query'
  const known = Object.keys('properties' in schema ? (schema.properties ?? {}) : {})
  let validate: ValidateFunction | null = null
  return (value: unknown): true | { error: Problem } => {
    validate ??= COMPILERS[part].compile(schema)
    // The text "1e999" becomes Infinity, and the same pass applies no limit to it: the converted value is checked once
    // more.
    if (validate(value) && (part === 'body' || validate(value))) return true
    const errors = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'anyOf')
    const faults = errors.map((error) => faultOf(part, error, known))
    const detail = faults.map(({ detail }) => detail).join('; ')
    const problem = detail === '' ? 'the request cannot be read' : detail
    return { error: new Problem('invalid_request', problem, { errors: faults }) }
  }
}

function faultOf(
  part: Part,
  { keyword, instancePath, params, message }: ErrorObject,
  known: readonly string[],
): Fault {
  if (keyword === 'additionalProperties') {
    const name = String(params['additionalProperty']).slice(0, 64)
    const list = known.length === 0 ? 'No parameter is accepted.' : `Accepted: ${known.join(', ')}.`
    return {
      field: fieldOf(part, `${instancePath}/${name}`),
      detail: `unknown ${CALLED[part]} "${name}".${guess(name, known)} ${list}`,
    }
  }
  const field = fieldOf(part, instancePath)
  const subject = instancePath === '' ? `the ${part}` : `"${instancePath.slice(1)}"`
  if (keyword === 'enum' && Array.isArray(params['allowedValues'])) {
    return { field, detail: `${subject} must be one of ${params['allowedValues'].join(', ')}` }
  }
  return { field, detail: `${subject} ${message ?? 'is not valid'}` }
}

function fieldOf(part: Part, pointer: string): string {
  return part === 'query' ? pointer.slice(1) : pointer
}
