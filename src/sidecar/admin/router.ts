import type { IncomingMessage } from 'node:http'
import { Problem } from './problem.ts'
import type { Answer } from './route.ts'

/** A route as the listener serves it. */
export interface Served {
  method: 'GET' | 'POST'
  /** `{id}` is the text up to the next slash; `{*}` all that follows. */
  path: string
  /** Bytes of a body. */
  bodyLimit?: number
  /** The answer has no known length: HEAD is refused. */
  streams?: boolean
  answer(request: IncomingMessage, body: unknown, params: Params): Answer | Promise<Answer>
}

export type Params = Readonly<Record<string, string>>

interface Pattern {
  expression: RegExp
  methods: Map<string, Served>
}

/** Characters of an id in a path. */
const ID = 512

/**
 * @returns a function that finds the route of a request. It throws a Problem when no route has this path, or none of them
 *   accepts this method.
 */
export function createRouter(
  routes: readonly Served[],
): (method: string, path: string) => { route: Served; params: Params } {
  const exact = new Map<string, Map<string, Served>>()
  const patterns = new Map<string, Pattern>()
  for (const route of routes) methodsOf(route.path).set(route.method, route)

  function methodsOf(path: string): Map<string, Served> {
    if (!path.includes('{')) return kept(exact, path, () => new Map())
    return kept(patterns, path, () => ({ expression: expressionOf(path), methods: new Map() })).methods
  }

  return (method, path) => {
    let params: Params = {}
    let methods = exact.get(path)
    for (const pattern of methods === undefined ? patterns.values() : []) {
      const found = pattern.expression.exec(path)
      if (found === null) continue
      params = decoded(found.groups ?? {})
      methods = pattern.methods
      break
    }
    if (methods === undefined)
      throw new Problem('not_found', 'there is nothing at this path; see /openapi.json')
    const route = methods.get(method === 'HEAD' ? 'GET' : method)
    if (route !== undefined && !(method === 'HEAD' && route.streams === true)) return { route, params }
    const allowed = [...methods.values()].flatMap((one) =>
      one.method === 'GET' && one.streams !== true ? ['GET', 'HEAD'] : [one.method],
    )
    throw new Problem('method_not_allowed', `this path accepts ${[...methods.keys()].join(', ')}`, {
      headers: { allow: allowed.join(', ') },
    })
  }
}

function kept<V>(map: Map<string, V>, key: string, make: () => V): V {
  const value = map.get(key) ?? make()
  map.set(key, value)
  return value
}

function expressionOf(path: string): RegExp {
  const parts = path
    .replaceAll('.', '\\.')
    .replace('{*}', '(?<rest>.*)')
    .replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')
  return new RegExp(`^${parts}$`)
}

function decoded(groups: Params): Params {
  if (Object.values(groups).some((text) => text.length > ID))
    throw new Problem('invalid_request', `a part of the path has more than ${ID} characters`)
  try {
    return Object.fromEntries(Object.entries(groups).map(([name, text]) => [name, decodeURIComponent(text)]))
  } catch {
    throw new Problem('invalid_request', 'the path cannot be decoded')
  }
}
