import type { Description, Operation } from './description.ts'
import { textAt } from './kind.ts'

/**
 * The routes and names of this deployment that the interface does not specify; null if its
 * description does not show them.
 */
export interface Places {
  readonly message: Operation | null
  readonly answer: Operation | null
  readonly turn: Operation | null
  readonly cancel: Operation | null
  readonly sessionStream: Operation | null
  readonly artifacts: Operation | null
  readonly deleteArtifact: Operation | null
  readonly saveAgent: Operation | null
  readonly deleteAgent: Operation | null
  readonly disconnect: Operation | null
  /** The name of the idempotency header. */
  readonly idempotency: string | null
  /** The query parameter that requests a snapshot before files are listed. */
  readonly snapshot: string | null
  /** The names, in lower case, of the headers with the requests that are left and with the name of their bucket. */
  readonly budget: { readonly left: string; readonly bucket: string } | null
}

const SHOWN = /\/(tools|turns|items|files|preview|fork|archive)(\/|$)/

/**
 * Finds the routes by the shape of each operation's request and answer, and by a name only if the
 * shape is ambiguous.
 */
export function findPlaces(description: Description): Places {
  const { operations, schemas } = description
  const find = (fits: (operation: Operation) => boolean): Operation | null => operations.find(fits) ?? null
  const takes = (operation: Operation, ...fields: string[]): boolean => {
    const properties = schemas.properties(operation.body)
    return fields.every((field) => Object.hasOwn(properties, field))
  }
  const streams = (operation: Operation): boolean =>
    description.mediaTypes(operation).includes('text/event-stream')
  const last = (operation: Operation): string => operation.params.at(-1) ?? ''
  const ofSession = (operation: Operation): boolean =>
    operation.path.startsWith('/v1/sessions/{') && operation.params.length === 1
  const endsInParam = (operation: Operation): boolean => operation.path.endsWith('}')
  const post = (operation: Operation): boolean => operation.method === 'POST'
  const get = (operation: Operation): boolean => operation.method === 'GET'
  return {
    message: find(
      (one) => post(one) && ofSession(one) && one.body !== null && description.statuses(one).includes('202'),
    ),
    answer: find((one) => post(one) && takes(one, 'call_id')),
    turn: find((one) => get(one) && /turn/.test(last(one)) && endsInParam(one)),
    cancel: find((one) => post(one) && one.body === null && /turn/.test(last(one)) && !endsInParam(one)),
    sessionStream: find((one) => get(one) && streams(one) && one.params.length === 1),
    artifacts: find(
      (one) => get(one) && ofSession(one) && !SHOWN.test(one.path) && !endsInParam(one) && !streams(one),
    ),
    deleteArtifact: find(
      (one) =>
        one.method === 'DELETE' && endsInParam(one) && /artifact|output/.test(`${last(one)} ${one.path}`),
    ),
    saveAgent: find((one) => post(one) && takes(one, 'name', 'instructions', 'tools')),
    deleteAgent: find(
      (one) => one.method === 'DELETE' && one.path.startsWith('/v1/agent') && endsInParam(one),
    ),
    disconnect: find((one) => !get(one) && one.path.startsWith('/v1/model-credentials/{')),
    idempotency: idempotencyHeader(description),
    snapshot: description.find('GET /v1/sessions/{id}/files')?.query.find((name) => name !== 'path') ?? null,
    budget: budgetHeaders(description),
  }
}

function idempotencyHeader(description: Description): string | null {
  const create = description.find('POST /v1/sessions')
  const found = create?.headers.find((header) =>
    /idempot|request.key/i.test(`${textAt(header, 'name')} ${textAt(header, 'description')}`),
  )
  return textAt(found, 'name') || null
}

function budgetHeaders(description: Description): Places['budget'] {
  const health = description.find('GET /v1/health')
  if (health === null) return null
  const headers = Object.entries(description.responseHeaders(health))
  const left = headers.find(([name, text]) => /remaining|left/.test(`${name} ${text.toLowerCase()}`))?.[0]
  const bucket = headers.find(
    ([name, text]) => /bucket|budget.name/.test(name) || /\b(names|name of).*bucket/i.test(text),
  )?.[0]
  return left === undefined || bucket === undefined ? null : { left, bucket }
}

/** An operation's path with `ids` in place of its parameters, matched by the word that a name contains. */
export function fill(operation: Operation, ids: Readonly<Record<string, string>>): string {
  return operation.path.replaceAll(/\{([^}]*)\}/g, (_, name: string) => {
    const word = Object.keys(ids).find((candidate) => name.toLowerCase().includes(candidate))
    return encodeURIComponent(word === undefined ? (Object.values(ids)[0] ?? '') : (ids[word] ?? ''))
  })
}
