import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import type { TObject } from 'typebox'
import { guess } from '../../std/nearest.ts'
import { Problem, type Fault } from './problem.ts'

const SETTINGS = {
  // The schema gives the type of a text in a query.
  query: { coerceTypes: true, useDefaults: true, allErrors: true },
  // In JSON a number is a number.
  body: { useDefaults: true, allErrors: true, allowUnionTypes: true },
}
const compilers = new Map<Part, Ajv>()

type Part = 'query' | 'body'

const CALLED: Record<Part, string> = { query: 'query parameter', body: 'field' }

/** Checks `value` against `schema` and fills in defaults. @throws {Problem} with every fault. */
export type Check = (value: unknown) => Promise<void>

/** The schema is compiled at the first value, and its compiler is loaded then: both would delay a start. */
export function createCheck(part: Part, schema: TObject): Check {
  let validate: ValidateFunction | null = null
  const known = Object.keys(schema.properties)
  return async (value) => {
    validate ??= (await compilerOf(part)).compile(schema)
    if (validate(value)) return
    const errors = (validate.errors ?? []).filter(({ keyword }) => keyword !== 'anyOf')
    const faults = errors.map((error) => faultOf(part, error, known))
    const detail = faults.map(({ detail }) => detail).join('; ')
    throw new Problem('invalid_request', detail === '' ? 'the request cannot be read' : detail, {
      errors: faults,
    })
  }
}

async function compilerOf(part: Part): Promise<Ajv> {
  const { Ajv } = await import('ajv')
  const compiler = compilers.get(part) ?? new Ajv(SETTINGS[part])
  compilers.set(part, compiler)
  return compiler
}

function faultOf(
  part: Part,
  { keyword, instancePath, params, message }: ErrorObject,
  known: readonly string[],
): Fault {
  const called = CALLED[part]
  if (keyword === 'additionalProperties') {
    const name = String(params['additionalProperty']).slice(0, 64)
    const list = known.length === 0 ? 'No parameter is accepted.' : `Accepted: ${known.join(', ')}.`
    return {
      field: fieldOf(part, `${instancePath}/${name}`),
      detail: `unknown ${called} "${name}".${guess(name, known)} ${list}`,
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
