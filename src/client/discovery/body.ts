import type { Template } from '../../std/template.ts'
import type { OpenApi } from './openapi.ts'
import { choicesOf, givenValue, shapesOf, takesText } from './schema.ts'
import type { Shape } from './schema.ts'

export interface Candidate {
  template: Template
  /** The confidence; a higher number is more certain. */
  score: number
}

const TYPE_FIELD = /^(type|kind|event|event_type)$/
/** Types of input other than a plain message. */
const NOT_PLAIN =
  /steer|interrupt|cancel|stop|abort|approv|answer|result|output|respon|tool|call|file|image|question/i
const PLAIN = /message|text|prompt|user|chat/i
/** Likely names of a message's text, the likeliest first. */
const TEXT_FIELDS = ['text', 'content', 'message', 'input', 'prompt', 'body']
/** Objects of the body that may contain a message. */
const NESTED_MAX = 2

/** Chooses the right type among those of a body. */
type Choose = (types: string[]) => string | null

/**
 * The most certain form of a body with a plain message: a field that chooses the type, and a free string beside it.
 */
export function findMessage(api: OpenApi, schema: unknown, choose: Choose = plainType): Candidate | null {
  return best(shapesOf(api, schema).map((shape) => messageIn(api, shape, choose, 0)))
}

/** The most certain form of a body with a message that steers a running turn (`input.steer`, rule INP-03). */
export function findSteering(api: OpenApi, schema: unknown): Candidate | null {
  return findMessage(api, schema, (types) => types.find((type) => /steer/i.test(type)) ?? null)
}

function messageIn(api: OpenApi, shape: Shape, choose: Choose, depth: number): Candidate | null {
  const fields = [...shape.fields]
  const here = best(
    fields
      .filter(([name]) => TYPE_FIELD.test(name))
      .map(([name, schema]) =>
        messageBeside(api, shape, choose, { typeField: name, types: choicesOf(api, schema) ?? [] }),
      ),
  )
  if (here !== null || depth >= NESTED_MAX) return here
  return best(
    fields.map(([name, schema]) => {
      const inner = best(shapesOf(api, schema).map((nested) => messageIn(api, nested, choose, depth + 1)))
      const rest = inner === null ? null : constants(api, shape, [name])
      return inner === null || rest === null
        ? null
        : { template: { ...rest, [name]: inner.template }, score: inner.score - 1 }
    }),
  )
}

function messageBeside(
  api: OpenApi,
  shape: Shape,
  choose: Choose,
  { typeField, types }: { typeField: string; types: string[] },
): Candidate | null {
  const type = choose(types)
  const textField = type === null ? null : textFieldOf(api, shape, typeField)
  if (type === null || textField === null) return null
  const rest = constants(api, shape, [typeField, textField])
  if (rest === null) return null
  const steers = types.some((other) => /steer/i.test(other))
  const score = (PLAIN.test(type) ? 4 : 0) + (steers ? 4 : 0) + (TEXT_FIELDS.includes(textField) ? 2 : 0)
  return { template: { ...rest, [typeField]: type, [textField]: '{{text}}' }, score }
}

/** The type of a plain message. If only `steer` and one other type exist, it is the other one, whatever its name. */
function plainType(types: string[]): string | null {
  const plain = types.filter((type) => !NOT_PLAIN.test(type))
  const named = plain.filter((type) => PLAIN.test(type))
  const likeliest = named.find((type) => /message/i.test(type)) ?? named[0]
  if (likeliest !== undefined) return likeliest
  const steers = types.some((type) => /steer/i.test(type))
  return steers && plain.length === 1 ? (plain[0] ?? null) : null
}

export function textFieldOf(api: OpenApi, shape: Shape, typeField: string): string | null {
  const free = [...shape.fields]
    .filter(([name, schema]) => name !== typeField && takesText(api, schema))
    .map(([name]) => name)
  const required = free.filter((name) => shape.required.has(name))
  const likely = TEXT_FIELDS.find((name) => free.includes(name))
  if (likely !== undefined) return likely
  if (required.length === 1) return required[0] ?? null
  return free.length === 1 ? (free[0] ?? null) : null
}

/**
 * The body of an answer to a function call, to which `output` or `error` is added: the form that has both `call_id`
 * and `output`.
 */
export function findAnswer(api: OpenApi, schema: unknown): Candidate | null {
  return best(
    shapesOf(api, schema).map((shape) => {
      const { fields } = shape
      if (!takesText(api, fields.get('call_id')) || !takesText(api, fields.get('output'))) return null
      const filled: Template = { call_id: '{{call_id}}' }
      if (shape.required.has('session_id')) filled['session_id'] = '{{session_id}}'
      const rest = constants(api, shape, ['call_id', 'output', 'error', 'session_id'])
      return rest === null ? null : { template: { ...rest, ...filled }, score: fields.has('error') ? 2 : 1 }
    }),
  )
}

/**
 * Values for the required fields except `filled`, as the document fixes them; null when it does not fix one of them.
 */
function constants(api: OpenApi, shape: Shape, filled: readonly string[]): Template | null {
  const rest: Template = {}
  for (const name of shape.required) {
    if (filled.includes(name)) continue
    const value = givenValue(api, shape.fields.get(name))
    if (value === undefined) return null
    rest[name] = value
  }
  return rest
}

function best(candidates: (Candidate | null)[]): Candidate | null {
  let first: Candidate | null = null
  for (const candidate of candidates) {
    if (candidate !== null && (first === null || candidate.score > first.score)) first = candidate
  }
  return first
}
