import { isObject, type JsonObject } from '../std/json.ts'
import { array, at, textAt } from './kind.ts'
import type { Method } from './reply.ts'
import { Schemas } from './schema.ts'

/** One operation of the description, unchanged. */
export interface Operation {
  readonly method: Method
  readonly path: string
  /** Names in braces, in order. */
  readonly params: readonly string[]
  readonly query: readonly string[]
  readonly headers: readonly JsonObject[]
  /** The JSON schema of the request's body, null when it has none. */
  readonly body: unknown
  readonly raw: JsonObject
}

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** `/v1/openapi.json`, unchanged; unreadable parts are ignored. */
export class Description {
  readonly document: unknown
  readonly schemas: Schemas
  readonly operations: readonly Operation[]

  constructor(document: unknown) {
    this.document = document
    this.schemas = new Schemas(document)
    this.operations = this.#read()
  }

  /** The operation at `GET /v1/…`; the names of its parameters do not matter. */
  find(endpoint: string): Operation | null {
    const shape = endpoint.replaceAll(/\{[^}]*\}/g, '{}')
    const found = this.operations.find(
      ({ method, path }) => `${method} ${path.replaceAll(/\{[^}]*\}/g, '{}')}` === shape,
    )
    return found ?? null
  }

  /** Media types of the successful answers. */
  mediaTypes(operation: Operation): string[] {
    return this.#successes(operation).flatMap((response) => Object.keys(contentOf(response)))
  }

  /** The schema of the successful JSON answer, null when there is none. */
  success(operation: Operation): unknown {
    for (const response of this.#successes(operation)) {
      const schema = at(contentOf(response)['application/json'], 'schema')
      if (schema !== undefined) return schema
    }
    return null
  }

  /** The status codes of the described responses. */
  statuses(operation: Operation): string[] {
    const { responses } = operation.raw
    return isObject(responses) ? Object.keys(responses) : []
  }

  /** The response headers that are described for successful answers, each with its description. */
  responseHeaders(operation: Operation): Record<string, string> {
    const found: Record<string, string> = {}
    for (const response of this.#successes(operation)) {
      const headers = isObject(response['headers']) ? response['headers'] : {}
      for (const [name, header] of Object.entries(headers)) {
        found[name.toLowerCase()] = textAt(this.schemas.resolve(header), 'description')
      }
    }
    return found
  }

  /**
   * The scopes that an operation requires: its security requirement, and extensions that name a
   * scope.
   */
  scopes(operation: Operation): string[] {
    const { security } = operation.raw
    const required = array.fits(security) ? (security as unknown[]) : []
    const named = required.flatMap((entry) => (isObject(entry) ? Object.values(entry).flat() : []))
    const extended = Object.entries(operation.raw)
      .filter(([key]) => key.startsWith('x-') && key.includes('scope'))
      .flatMap(([, value]) => (Array.isArray(value) ? (value as unknown[]) : [value]))
    return [...new Set([...named, ...extended])].filter((scope): scope is string => typeof scope === 'string')
  }

  #successes(operation: Operation): JsonObject[] {
    const { responses } = operation.raw
    if (!isObject(responses)) return []
    return Object.entries(responses)
      .filter(([status]) => status.startsWith('2'))
      .map(([, response]) => this.schemas.resolve(response))
  }

  #read(): Operation[] {
    const paths = at(this.document, 'paths')
    if (!isObject(paths)) return []
    return Object.entries(paths).flatMap(([path, entry]) => {
      const item = this.schemas.resolve(entry)
      return METHODS.flatMap((method) => {
        const raw = item[method.toLowerCase()]
        return isObject(raw) ? [this.#operation(method, path, raw, item)] : []
      })
    })
  }

  #operation(method: Method, path: string, raw: JsonObject, item: JsonObject): Operation {
    const parameters = [item['parameters'], raw['parameters']]
      .flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : []))
      .map((parameter) => this.schemas.resolve(parameter))
    const query = parameters.filter((one) => one['in'] === 'query').map((one) => textAt(one, 'name'))
    const headers = parameters.filter((one) => one['in'] === 'header')
    const params = [...path.matchAll(/\{([^}]*)\}/g)].map(([, name = '']) => name)
    const body = at(contentOf(this.schemas.resolve(raw['requestBody']))['application/json'], 'schema') ?? null
    return { method, path, params, query, headers, body, raw }
  }
}

function contentOf(part: JsonObject): JsonObject {
  const { content } = part
  return isObject(content) ? content : {}
}
