import { Ajv } from 'ajv'
import { Ajv2020, type AnySchemaObject, type ErrorObject } from 'ajv/dist/2020.js'
import { parseDuration } from '../../std/duration.ts'
import { isObject, type Json } from '../../std/json.ts'
import { checks } from './checks.ts'
import type { Path } from './fault.ts'
import { nearest } from '../../std/nearest.ts'
import { settings } from './settings.ts'
import type { Blame } from './tree.ts'

const ajv = new Ajv2020({
  allErrors: true,
  useDefaults: true,
  verbose: true,
  strictRequired: false,
  // Tests check that our schema is valid: a check at each start would take as long as the rest of
  // the start.
  validateSchema: false,
  // Optimizing the generated code takes as long as generating it, for a file that is validated
  // once.
  code: { optimize: false },
})
ajv.addVocabulary(['errorMessage'])
for (const [name, check] of Object.entries(checks)) {
  ajv.addFormat(name, (value) => check(value) === null)
}
ajv.addKeyword({
  keyword: 'durationRange',
  type: 'string',
  schemaType: 'array',
  validate: (range: [string, string], value: string) => {
    const ms = parseDuration(value)
    return (
      ms === null || (ms >= (parseDuration(range[0]) ?? 0) && ms <= (parseDuration(range[1]) ?? Infinity))
    )
  },
})
const validate = ajv.compile(settings)

/** Validates `tree` against the schema, fills in the defaults in place, and returns every fault. */
export function judge(tree: Json | undefined, blame: Blame): void {
  if (validate(tree)) return
  for (const error of validate.errors ?? []) {
    // The parent of an alternative, or rules.ts, reports the faults of the alternative.
    if (/\/(oneOf|anyOf)\//.test(error.schemaPath) || error.keyword === 'oneOf') continue
    const path = pathOf(error.instancePath)
    if (error.keyword === 'additionalProperties') {
      const key = String(error.params['additionalProperty'])
      blame([...path, key], unknownKey(key, error.parentSchema), 'key')
    } else if (error.keyword === 'required') {
      blame([...path, String(error.params['missingProperty'])], 'is required')
    } else {
      blame(path, messageOf(error))
    }
  }
}

/**
 * The fault of a JSON Schema that a tool declares, or null. The library accepts draft-07 and
 * 2020-12.
 */
export function schemaFault(schema: unknown): string | null {
  if (!isObject(schema)) return null
  const draft07 = typeof schema.$schema === 'string' && schema.$schema.includes('draft-07')
  const judge = draft07 ? new Ajv() : ajv
  try {
    if (judge.validateSchema(schema) === true) return null
  } catch {
    return 'names a $schema that is not known'
  }
  const [first] = judge.errors ?? []
  const where = pathOf(first?.instancePath ?? '').join('.')
  return `is not a JSON Schema: ${where === '' ? '' : `${where} `}${first?.message ?? ''}`
}

function pathOf(pointer: string): Path {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step) => (/^[0-9]+$/.test(step) ? Number(step) : step))
}

function unknownKey(key: string, schema: AnySchemaObject | undefined): string {
  const known = Object.keys((schema?.['properties'] as object | undefined) ?? {})
  const guess = nearest(key, known)
  return guess === null
    ? `unknown key; known here: ${known.join(', ')}`
    : `unknown key, did you mean "${guess}"?`
}

function messageOf(error: ErrorObject): string {
  const schema = error.parentSchema ?? {}
  const { params } = error
  if (error.keyword === 'durationRange') {
    const [least, most] = schema['durationRange'] as [string, string]
    return `must be between ${least} and ${most}${shown(error)}`
  }
  const expected = schema['errorMessage'] as string | undefined
  if (expected !== undefined) return `must be ${expected}${shown(error)}`
  switch (error.keyword) {
    case 'type':
      return `must be ${typeName(String(params['type']))}${shown(error)}`
    case 'enum':
      return `must be ${listed(params['allowedValues'] as unknown[])}${shown(error)}`
    case 'anyOf':
      return `must be ${listed(literals(schema))}${shown(error)}`
    case 'format':
      return checks[String(params['format'])]?.(String(error.data)) ?? 'is not valid'
    case 'minimum':
      return `must be at least ${params['limit']}${shown(error)}`
    case 'maximum':
      return `must be at most ${params['limit']}${shown(error)}`
    case 'minItems':
      return `needs at least ${params['limit']} entry`
    case 'maxItems':
      return `may have at most ${params['limit']} entries`
    case 'maxLength':
      return `may have at most ${params['limit']} characters`
    default:
      return error.message ?? 'is not valid'
  }
}

/** Longer values are cut; the position identifies them. */
const SHOWN = 40

/**
 * The invalid value, unless it is secret, structured, or an address (which may hold a password).
 */
function shown(error: ErrorObject): string {
  const { data } = error
  if (error.parentSchema?.['writeOnly'] === true || typeof data === 'object' || data === undefined) return ''
  const text = JSON.stringify(data)
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

function literals(schema: AnySchemaObject): unknown[] {
  return ((schema['anyOf'] as { const?: unknown }[] | undefined) ?? []).map((one) => one.const)
}

function listed(values: unknown[]): string {
  const words = values.map(String)
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`
}
