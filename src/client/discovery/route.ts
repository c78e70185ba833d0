import { OperatorError } from '../../std/errors.ts'
import type { Method, OpenApi, Operation } from './openapi.ts'
import { canFill, isPlainPath, samePath } from './path.ts'
import { parametersOf, type Named } from './parameters.ts'
import type { PathTemplate } from '../../std/path.ts'

export type How = 'document' | 'override' | 'default'

/** The path is a template as in the document. */
export interface Route extends PathTemplate<Named> {
  found: true
  method: Method
  how: How
  /** The scopes that the document requires; null when it does not specify them. */
  scopes: readonly string[] | null
  /** Query parameters that the document allows. */
  query: readonly string[]
}

export interface NoRoute {
  found: false
  /** For the operator, with the fix. */
  reason: string
  /** The key of `service.routes` that would name the route; null if none does. */
  key: string | null
}

/** The configuration's `service.routes`. */
export interface RouteOverrides {
  answer_path?: string
  message_path?: string
  /** JSON, as text or as a value, with `{{text}}` in it. */
  message_body?: unknown
  turn_path?: string
  session_stream_path?: string
  idempotency_header?: string
}

function templateOf(path: string): PathTemplate<Named> {
  return { path, parameters: parametersOf(path) }
}

export function routeOf(operation: Operation, how: How = 'document'): Route {
  const query = operation.parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name)
  return {
    found: true,
    method: operation.method,
    ...templateOf(operation.path),
    how,
    scopes: operation.scopes,
    query,
  }
}

/** The operation of the document at this path, with any names of the parameters. */
export function operationAt(api: OpenApi, method: Method, path: string): Operation | undefined {
  return api.operations.find((operation) => operation.method === method && samePath(operation.path, path))
}

/** A path that the interface names; the document adds details. */
export function fixedRoute(api: OpenApi, method: Method, path: string): Route {
  const operation = operationAt(api, method, path)
  if (operation !== undefined) return routeOf(operation)
  return { found: true, method, ...templateOf(path), how: 'default', scopes: null, query: [] }
}

/**
 * The path that the configuration gives, if any.
 * @throws {OperatorError} when it is not a path below the service's address, or has a parameter that we cannot fill.
 */
export function overriddenRoute<Key extends string>(
  api: OpenApi,
  overrides: { readonly [key in Key]?: string },
  key: Key,
  method: Method,
  ids: readonly Named[],
): Route | null {
  const path: string | undefined = overrides[key]
  if (path === undefined) return null
  if (!isPlainPath(path)) {
    throw new OperatorError(
      `service.routes.${key}: "${path}" is not a path such as /v1/sessions/{session_id}/…`,
      2,
    )
  }
  if (!canFill(path, ids)) {
    const known = ids.map((id) => `{${id}_id}`).join(' and ')
    throw new OperatorError(`service.routes.${key}: "${path}" may have only the parameters ${known}`, 2)
  }
  return { ...fixedRoute(api, method, path), ...templateOf(path), how: 'override' }
}

export function noRoute(what: string, key?: string): NoRoute {
  const fix = key === undefined ? '' : `; set service.routes.${key}`
  return { found: false, reason: `the service's document has no ${what}${fix}`, key: key ?? null }
}
