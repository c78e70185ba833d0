import { isObject } from '../../std/json.ts'
import type { JsonObject } from '../../std/json.ts'
import { isPlainPath } from './path.ts'

/**
 * An OpenAPI document, read defensively: it comes from the network, so any part may be missing, of
 * another type, recursive, or huge. No function here throws, and all work is limited.
 */

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface Operation {
  method: Method
  path: string
  parameters: Parameter[]
  /** JSON Schema of the JSON body. */
  body: unknown
  responses: Response[]
  /** null when the document does not specify it. */
  scopes: string[] | null
}

export interface Parameter {
  name: string
  in: string
  description: string
}

export interface Response {
  status: string
  /** JSON Schema by media type. */
  content: Map<string, unknown>
  headers: ResponseHeader[]
}

export interface ResponseHeader {
  name: string
  description: string
  /** True when its schema says that it is a number. */
  numeric: boolean
}

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
/** The most nodes that are read in all; the whole interface with its shapes needs a few thousand. */
const FUEL = 200_000
/** Maximum length of a chain of references. */
const HOPS_MAX = 16
/** Operations of a document that are read. */
const OPERATIONS_MAX = 2000
/** Entries read of any one list or map. */
const ENTRIES_MAX = 500
/** Characters read of a description. */
const TEXT_MAX = 2000

export class OpenApi {
  readonly operations: readonly Operation[]
  readonly #root: JsonObject
  #fuel = FUEL

  constructor(document: unknown) {
    this.#root = isObject(document) ? document : {}
    this.operations = this.#readOperations()
  }

  /** The node itself, or the target of its `$ref` in this document; null for any value but an object. */
  resolve(node: unknown): JsonObject | null {
    let at = node
    for (let hops = 0; hops <= HOPS_MAX; hops++) {
      if (this.#fuel-- <= 0 || !isObject(at)) return null
      const reference = own(at, '$ref')
      if (typeof reference !== 'string') return at
      at = this.#follow(reference)
    }
    return null
  }

  /** Subtracts `nodes` from the number that may still be read. @returns false once it is used up. */
  spend(nodes: number): boolean {
    this.#fuel -= nodes
    return this.#fuel > 0
  }

  #follow(reference: string): unknown {
    if (!reference.startsWith('#/') || reference.length > TEXT_MAX) return null
    let at: unknown = this.#root
    for (const part of reference.slice(2).split('/')) {
      if (this.#fuel-- <= 0) return null
      const key = decoded(part).replaceAll('~1', '/').replaceAll('~0', '~')
      if (Array.isArray(at)) at = at[Number(key)]
      else if (isObject(at)) at = own(at, key)
      else return null
    }
    return at
  }

  #readOperations(): Operation[] {
    const operations: Operation[] = []
    const paths = this.#entries(own(this.#root, 'paths'), OPERATIONS_MAX)
    // A document whose server address ends in /v1 may omit the prefix in its paths.
    const prefix = paths.some(([path]) => path === '/v1' || path.startsWith('/v1/')) ? '' : '/v1'
    for (const [path, node] of paths) {
      const item = this.resolve(node)
      if (item === null || !isPlainPath(prefix + path)) continue
      const shared = this.#parameters(own(item, 'parameters'))
      for (const method of METHODS) {
        const operation = this.resolve(own(item, method.toLowerCase()))
        if (operation === null || operations.length >= OPERATIONS_MAX) continue
        operations.push({
          method,
          path: prefix + path,
          parameters: [...shared, ...this.#parameters(own(operation, 'parameters'))],
          body: this.#body(operation),
          responses: this.#responses(own(operation, 'responses')),
          scopes: this.#scopes(operation),
        })
      }
    }
    return operations
  }

  #parameters(node: unknown): Parameter[] {
    if (!Array.isArray(node)) return []
    return node.slice(0, ENTRIES_MAX).flatMap((entry) => {
      const parameter = this.resolve(entry)
      const name = own(parameter, 'name')
      const where = own(parameter, 'in')
      if (typeof name !== 'string' || typeof where !== 'string') return []
      return [{ name, in: where, description: text(own(parameter, 'description')) }]
    })
  }

  #body(operation: JsonObject): unknown {
    const body = this.resolve(own(operation, 'requestBody'))
    const content = this.#entries(own(body, 'content'), ENTRIES_MAX)
    const json = content.find(([type]) => isJson(type))
    return json === undefined ? null : own(this.resolve(json[1]), 'schema')
  }

  #responses(node: unknown): Response[] {
    return this.#entries(node, ENTRIES_MAX).map(([status, entry]) => {
      const response = this.resolve(entry)
      const content = this.#entries(own(response, 'content'), ENTRIES_MAX)
      const headers = this.#entries(own(response, 'headers'), ENTRIES_MAX)
      return {
        status,
        content: new Map(content.map(([type, media]) => [type, own(this.resolve(media), 'schema')])),
        headers: headers.map(([name, node]) => this.#header(name, this.resolve(node))),
      }
    })
  }

  #header(name: string, node: JsonObject | null): ResponseHeader {
    const type = own(this.resolve(own(node, 'schema')), 'type')
    const numeric = type === 'integer' || type === 'number'
    return { name, description: text(own(node, 'description')), numeric }
  }

  /** An extension such as `x-scope` or `x-required-scopes`, else the scopes of `security`. */
  #scopes(operation: JsonObject): string[] | null {
    for (const [key, value] of this.#entries(operation, ENTRIES_MAX)) {
      if (!/^x-.*scope/i.test(key)) continue
      if (typeof value === 'string') return [value]
      if (Array.isArray(value)) return strings(value)
    }
    const security = own(operation, 'security')
    if (!Array.isArray(security)) return null
    const [first] = security.map((entry) =>
      this.#entries(entry, ENTRIES_MAX).flatMap(([, scopes]) => strings(scopes)),
    )
    return first ?? []
  }

  #entries(node: unknown, most: number): [string, unknown][] {
    const map = this.resolve(node)
    if (map === null) return []
    const entries: [string, unknown][] = []
    for (const key in map) {
      if (entries.length >= most || this.#fuel-- <= 0) break
      if (Object.hasOwn(map, key)) entries.push([key, map[key]])
    }
    return entries
  }
}

export function isJson(mediaType: string): boolean {
  return /^application\/([\w.-]+\+)?json\b/i.test(mediaType)
}

/** An own property: names such as `constructor` have no special meaning. */
export function own(node: JsonObject | null, key: string): unknown {
  return node !== null && Object.hasOwn(node, key) ? node[key] : undefined
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : []
}

function text(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, TEXT_MAX) : ''
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
