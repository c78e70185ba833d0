import { parseJson, isObject, type Json, type JsonObject } from '../../std/json.ts'

/**
 * The keywords of schema.ts that the validation uses. `oneOf` (`url` or `module`) is not among them: rules.ts checks
 * it, with a more precise message.
 */
interface Keywords {
  type: string
  anyOf: Shape[]
  const: Json
  enum: Json[]
  default: Json
  // Of an object.
  properties: Record<string, Shape>
  required: string[]
  additionalProperties: Shape | false
  maxProperties: number
  // Of a list.
  items: Shape
  minItems: number
  maxItems: number
  // Of a number.
  minimum: number
  maximum: number
  // Of a text.
  minLength: number
  maxLength: number
  pattern: string
  format: string
  durationRange: [string, string]
  writeOnly: boolean
  errorMessage: string
}

/** JSON Schema: any of its keywords. */
export type Shape = { [Keyword in keyof Keywords]?: Keywords[Keyword] }

export function propertyOf(shape: Shape | undefined, key: string): Shape | undefined {
  return shape?.properties !== undefined && Object.hasOwn(shape.properties, key)
    ? shape.properties[key]
    : undefined
}

/** A text from the environment as the number or boolean of its key; unchanged when it is neither. */
function scalarOf(text: string, shape: Shape | undefined): Json {
  if (shape?.type === 'boolean' && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  const numeric = shape?.type === 'integer' || shape?.type === 'number'
  return numeric && /^-?[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : text
}

/** As `scalarOf`; a list may also be given as JSON or separated by commas, an object as JSON. */
export function valueOf(text: string, shape: Shape | undefined): Json {
  const mayBeList = shape?.anyOf?.some(({ type }) => type === 'array') === true
  if (shape?.type !== 'array' && shape?.type !== 'object' && !mayBeList) return scalarOf(text, shape)
  try {
    const value = parseJson(text) as Json
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // Not JSON: possibly a list of words.
  }
  const words = shape?.items?.type === 'string'
  return words
    ? text
        .split(',')
        .map((word) => word.trim())
        .filter((word) => word !== '')
    : text
}

/**
 * Prepares a tree for the check against the schema, in place. A key without a value, or with an empty one as after
 * `${VAR:-}`, is removed. A text that comes from a variable becomes a number or boolean if its key needs one.
 */
export function settle(tree: Json | undefined, shape: Shape, expanded: ReadonlySet<string>): void {
  walk(tree, shape, [])

  function walk(value: Json | undefined, of: Shape | undefined, path: (string | number)[]): void {
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) {
        value[index] = scalar(item, of?.items, [...path, index])
        walk(value[index], of?.items, [...path, index])
      }
    } else if (isObject(value) && of?.properties !== undefined) {
      walkObject(value, of, path)
    }
  }

  function walkObject(value: JsonObject, of: Shape, path: (string | number)[]): void {
    for (const [key, item] of Object.entries(value)) {
      if (item === null || item === undefined || item === '') {
        // An unknown key stays: the check reports it.
        if (propertyOf(of, key) !== undefined) delete value[key]
        continue
      }
      value[key] = scalar(item, propertyOf(of, key), [...path, key])
      walk(value[key], propertyOf(of, key), [...path, key])
    }
  }

  function scalar(item: Json, of: Shape | undefined, path: (string | number)[]): Json {
    return typeof item === 'string' && expanded.has(JSON.stringify(path)) ? scalarOf(item, of) : item
  }
}
