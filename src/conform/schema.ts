import { isObject, type JsonObject } from '../std/json.ts'

/** The most references that are followed in a chain; a circular chain stops here. */
const DEEPEST = 12

/** Reads JSON Schemas of a description and follows its references. */
export class Schemas {
  readonly #document: unknown

  constructor(document: unknown) {
    this.#document = document
  }

  /** The target of a reference, or the value itself; an empty object for any other value. */
  resolve(value: unknown): JsonObject {
    let found = value
    for (let depth = 0; depth < DEEPEST; depth++) {
      if (!isObject(found)) return {}
      const reference = found['$ref']
      if (typeof reference !== 'string') return found
      found = this.#follow(reference)
    }
    return {}
  }

  /** The properties of a schema, those of its parts (`allOf`, `oneOf`, `anyOf`) included. */
  properties(schema: unknown, depth = 0): Record<string, unknown> {
    if (depth > DEEPEST) return {}
    const resolved = this.resolve(schema)
    const own = isObject(resolved['properties']) ? { ...resolved['properties'] } : {}
    const inner = this.parts(resolved).map((part) => this.properties(part, depth + 1))
    return Object.assign({}, ...inner, own) as Record<string, unknown>
  }

  parts(schema: JsonObject): unknown[] {
    return ['allOf', 'oneOf', 'anyOf'].flatMap((key) => {
      const parts = schema[key]
      return Array.isArray(parts) ? parts : []
    })
  }

  /** The words that a schema allows: `enum`, `const`, and those of its parts. */
  words(schema: unknown, depth = 0): string[] {
    if (depth > DEEPEST) return []
    const resolved = this.resolve(schema)
    const listed = Array.isArray(resolved['enum']) ? resolved['enum'] : []
    const own = [...listed, resolved['const']].filter((word): word is string => typeof word === 'string')
    return [...own, ...this.parts(resolved).flatMap((part) => this.words(part, depth + 1))]
  }

  typesOf(schema: unknown): string[] {
    const { type } = this.resolve(schema)
    const types: unknown[] = Array.isArray(type) ? type : [type]
    return types.filter((one): one is string => typeof one === 'string')
  }

  #follow(reference: string): unknown {
    if (!reference.startsWith('#/')) return undefined
    let found = this.#document
    for (const step of reference.slice(2).split('/')) {
      const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
      if (!isObject(found) || !Object.hasOwn(found, key)) return undefined
      found = found[key]
    }
    return found
  }
}
