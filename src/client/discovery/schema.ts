import type { JsonObject } from '../../std/json.ts'
import { own } from './openapi.ts'
import type { OpenApi } from './openapi.ts'

/** One form of an object: its fields with their schemas, and the required ones. */
export interface Shape {
  fields: Map<string, unknown>
  required: Set<string>
}

/** The most forms that are read of one schema, after `oneOf` and `anyOf` are expanded. */
const SHAPES_MAX = 64
/** Maximum nesting of schemas. */
const DEPTH_MAX = 8
/** Members read of a `oneOf`, `anyOf`, `allOf` or `enum`. */
const MEMBERS_MAX = 64
/** Fields read of one object. */
const FIELDS_MAX = 200

/** Every form of an object schema. A schema that is not an object has one form, without fields. */
export function shapesOf(api: OpenApi, schema: unknown, depth = 0): Shape[] {
  const node = depth > DEPTH_MAX ? null : api.resolve(schema)
  if (node === null) return [emptyShape()]
  let shapes = [shapeOf(api, node)]
  for (const part of members(own(node, 'allOf'))) {
    shapes = combined(api, shapes, shapesOf(api, part, depth + 1))
  }
  for (const key of ['oneOf', 'anyOf']) {
    const choices = members(own(node, key))
    if (choices.length === 0) continue
    shapes = combined(
      api,
      shapes,
      choices.flatMap((choice) => shapesOf(api, choice, depth + 1)),
    )
  }
  return shapes
}

function emptyShape(): Shape {
  return { fields: new Map(), required: new Set() }
}

function shapeOf(api: OpenApi, node: JsonObject): Shape {
  const shape = emptyShape()
  const properties = api.resolve(own(node, 'properties'))
  for (const name in properties) {
    if (shape.fields.size >= FIELDS_MAX) break
    if (Object.hasOwn(properties, name)) shape.fields.set(name, properties[name])
  }
  for (const name of members(own(node, 'required'))) {
    if (typeof name === 'string') shape.required.add(name)
  }
  return shape
}

function combined(api: OpenApi, left: Shape[], right: Shape[]): Shape[] {
  const all: Shape[] = []
  for (const one of left) {
    for (const other of right) {
      if (all.length >= SHAPES_MAX || !api.spend(one.fields.size + other.fields.size)) return all
      all.push({
        fields: new Map([...one.fields, ...other.fields]),
        required: new Set([...one.required, ...other.required]),
      })
    }
  }
  return all
}

/**
 * The strings that a schema allows, if it lists them with `const`, `enum`, or a choice of these. null: any string.
 */
export function choicesOf(api: OpenApi, schema: unknown, depth = 0): string[] | null {
  const node = depth > DEPTH_MAX ? null : api.resolve(schema)
  if (node === null) return null
  const constant = own(node, 'const')
  if (typeof constant === 'string') return [constant]
  const values = members(own(node, 'enum')).filter((value) => typeof value === 'string')
  if (values.length > 0) return values
  for (const key of ['oneOf', 'anyOf', 'allOf']) {
    const found = members(own(node, key)).flatMap((part) => choicesOf(api, part, depth + 1) ?? [])
    if (found.length > 0) return found.slice(0, MEMBERS_MAX)
  }
  return null
}

/** True when the schema accepts any string. */
export function takesText(api: OpenApi, schema: unknown, depth = 0): boolean {
  const node = depth > DEPTH_MAX ? null : api.resolve(schema)
  if (node === null || choicesOf(api, node) !== null) return false
  const type = own(node, 'type')
  if (type === 'string' || (Array.isArray(type) && type.includes('string'))) return true
  return ['oneOf', 'anyOf', 'allOf'].some((key) =>
    members(own(node, key)).some((part) => takesText(api, part, depth + 1)),
  )
}

/** The value that a schema fixes: its only choice, or its default. undefined: the caller chooses. */
export function givenValue(api: OpenApi, schema: unknown): string | undefined {
  const choices = choicesOf(api, schema)
  if (choices?.length === 1) return choices[0]
  const preset = own(api.resolve(schema), 'default')
  return typeof preset === 'string' ? preset : undefined
}

function members(node: unknown): unknown[] {
  return Array.isArray(node) ? node.slice(0, MEMBERS_MAX) : []
}
