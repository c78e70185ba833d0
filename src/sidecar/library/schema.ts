import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { messageOf } from '../../std/errors.ts'
import { isObject, type JsonObject } from '../../std/json.ts'
import type { FromSchema } from './infer.ts'

/**
 * The types of a tool's `input`: a plain JSON Schema, or anything that is both a Standard Schema
 * and a Standard JSON Schema (zod 4, valibot, arktype). We do not depend on them: these are the
 * parts of the two specifications that we use.
 */
export interface StandardInput<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    readonly jsonSchema: { readonly input: (options: { target: string }) => Record<string, unknown> }
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export type ToolInput = JsonSchema | StandardInput

/** A plain JSON Schema; readonly, so that the compiler keeps the literal types. */
export type JsonSchema = { readonly [keyword: string]: JsonSchemaPart | undefined }
type JsonSchemaPart = null | boolean | number | string | readonly JsonSchemaPart[] | JsonSchema

/** The input type of `run` for an `input`. */
export type InputOf<I> = I extends StandardInput<infer Output> ? Output : FromSchema<I>

export interface CompiledInput {
  /** JSON Schema, as declared to the service. */
  parameters: JsonObject
  check(value: unknown): Promise<{ value: unknown } | { issues: string[] }>
}

/** @throws {TypeError} when the schema cannot be used. */
export function compileInput(input: ToolInput): CompiledInput {
  if (isStandard(input)) return compileStandard(input)
  const parameters: unknown = input
  if (!isObject(parameters)) throw new TypeError('the input schema is not an object')
  return compileJsonSchema(parameters)
}

function isStandard(input: ToolInput): input is StandardInput {
  return '~standard' in input && typeof input['~standard'] === 'object'
}

function compileStandard(input: StandardInput): CompiledInput {
  const standard = input['~standard']
  // A Standard Schema without its JSON Schema can check arguments, but cannot be declared to the service.
  const describe = standard.jsonSchema as StandardInput['~standard']['jsonSchema'] | undefined
  if (describe === undefined) {
    throw new TypeError(`the input schema of ${standard.vendor} has no JSON Schema (Standard JSON Schema)`)
  }
  const parameters = describe.input({ target: 'draft-2020-12' })
  return {
    parameters: isObject(parameters) ? parameters : {},
    async check(value) {
      const result = await standard.validate(value)
      if (result.issues === undefined) return { value: result.value }
      return { issues: result.issues.map(issueText) }
    },
  }
}

function issueText({ message, path = [] }: StandardIssue): string {
  const keys = path.map((part) => String(typeof part === 'object' ? part.key : part))
  return keys.length === 0 ? message : `${keys.join('.')}: ${message}`
}

function compileJsonSchema(parameters: JsonObject): CompiledInput {
  const validate = compile(parameters)
  return {
    parameters,
    async check(value) {
      if (validate(value)) return { value }
      return {
        issues: (validate.errors ?? []).map(({ instancePath, message }) => {
          const path = instancePath.slice(1).replaceAll('/', '.')
          return path === '' ? (message ?? 'does not fit') : `${path}: ${message ?? 'does not fit'}`
        }),
      }
    },
  }
}

/** 2020-12 unless the schema names draft-07, which many generators still do. */
function compile(parameters: JsonObject) {
  const options = { allErrors: true, strict: false, validateFormats: false }
  const draft07 = typeof parameters.$schema === 'string' && parameters.$schema.includes('draft-07')
  try {
    return (draft07 ? new Ajv(options) : new Ajv2020(options)).compile(parameters)
  } catch (error) {
    throw new TypeError(`the input schema cannot be used: ${messageOf(error)}`, { cause: error })
  }
}
