import { OperatorError } from '../../std/errors.ts'
import { isObject } from '../../std/json.ts'
import { findAnswer, findMessage } from './body.ts'
import type { Candidate } from './body.ts'
import { isJson } from './openapi.ts'
import type { OpenApi, Operation } from './openapi.ts'
import { canFill, endsInParameter, lastWord } from './path.ts'
import { parametersOf, type Named } from './parameters.ts'
import type { Template } from '../../std/template.ts'
import { noRoute, operationAt, overriddenRoute, routeOf } from './route.ts'
import type { NoRoute, Route, RouteOverrides } from './route.ts'
import { choicesOf, shapesOf } from './schema.ts'

/** Finds the operations whose routes the interface does not specify, each by its shape. */

export interface Posting {
  route: Route | NoRoute
  body: Template | null
}

/** The answer to a function call: the POST whose body has `call_id` and `output`. */
export function findAnswerRoute(api: OpenApi, overrides: RouteOverrides): Posting {
  const ids: Named[] = ['session', 'call']
  const named: Template = { call_id: '{{call_id}}' }
  const override = overriddenRoute(api, overrides, 'answer_path', 'POST', ids)
  if (override !== null) {
    const body = findAnswer(api, operationAt(api, 'POST', override.path)?.body)
    return { route: override, body: body?.template ?? named }
  }
  return (
    surest(api, ids, findAnswer) ?? {
      route: noRoute('POST that takes call_id and output', 'answer_path'),
      body: null,
    }
  )
}

/** The POST that sends a message to a session: its body has a field with listed types, and a text beside it. */
export function findMessageRoute(api: OpenApi, overrides: RouteOverrides): Posting {
  const given = messageBodyOf(overrides.message_body)
  const override = overriddenRoute(api, overrides, 'message_path', 'POST', ['session'])
  if (override === null) {
    const found = surest(api, ['session'], findMessage)
    if (found === null) return { route: noRoute('POST of a message', 'message_path'), body: null }
    return { route: found.route, body: given ?? found.body }
  }
  const body = given ?? findMessage(api, operationAt(api, 'POST', override.path)?.body)?.template ?? null
  return {
    route: body === null ? noRoute('shape for the body of a message', 'message_body') : override,
    body,
  }
}

function surest(
  api: OpenApi,
  ids: readonly Named[],
  find: (api: OpenApi, schema: unknown) => Candidate | null,
): Posting | null {
  let best: { operation: Operation; candidate: Candidate; score: number } | null = null
  for (const operation of api.operations) {
    if (operation.method !== 'POST' || !canFill(operation.path, ids)) continue
    // The path of a message names its session. The path of an answer may name only the call, which belongs to a
    // session.
    const below = parametersOf(operation.path).includes('session')
    if (!below && !ids.includes('call')) continue
    const candidate = find(api, operation.body)
    if (candidate === null) continue
    const score = candidate.score * 2 + (below ? 1 : 0)
    if (best === null || score > best.score) best = { operation, candidate, score }
  }
  return best === null ? null : { route: routeOf(best.operation), body: best.candidate.template }
}

/** @throws {OperatorError} when the configured body is not a JSON object with `{{text}}` in a string. */
export function messageBodyOf(given: unknown, key = 'message_body'): Template | null {
  if (given === undefined) return null
  let body: unknown = given
  if (typeof given === 'string') {
    try {
      body = JSON.parse(given)
    } catch {
      // Text that is not JSON is refused below, as a value that is not an object.
    }
  }
  if (!isObject(body) || !JSON.stringify(body).includes('{{text}}')) {
    throw new OperatorError(
      `service.routes.${key}: must be a JSON object with {{text}} in one of its strings`,
      2,
    )
  }
  return body
}

/** The GET whose path ends in a turn's id, or in any id and whose answer is a turn. */
export function findTurnRoute(api: OpenApi, overrides: RouteOverrides): Route | NoRoute {
  const override = overriddenRoute(api, overrides, 'turn_path', 'GET', ['session', 'turn'])
  if (override !== null) return override
  const reads = api.operations.filter(
    ({ method, path }) =>
      method === 'GET' &&
      endsInParameter(path) &&
      parametersOf(path)
        .slice(0, -1)
        .every((name) => name === 'session' || name === 'turn'),
  )
  const named = reads.filter(({ path }) => parametersOf(path).at(-1) === 'turn')
  const shaped = reads.filter(
    (operation) => parametersOf(operation.path).at(-1) === null && answers(api, operation, 'turn'),
  )
  const found = [...named, ...shaped]
  const operation = found.find(({ path }) => parametersOf(path).includes('session')) ?? found[0]
  return operation === undefined ? noRoute('GET of a single turn', 'turn_path') : routeOf(operation)
}

/** The GET about one session whose answer is an event stream. */
export function findSessionStream(api: OpenApi, overrides: RouteOverrides): Route | NoRoute {
  const override = overriddenRoute(api, overrides, 'session_stream_path', 'GET', ['session'])
  if (override !== null) return override
  const operation = aboutSession(api).find(({ responses }) =>
    responses.some(({ content }) => [...content.keys()].some((type) => /^text\/event-stream\b/i.test(type))),
  )
  return operation === undefined
    ? noRoute('event stream of one session', 'session_stream_path')
    : routeOf(operation)
}

/** The list beside the archive that the interface names, else any list of the artifacts of a session. */
export function findArtifactList(api: OpenApi): Route | NoRoute {
  const lists = aboutSession(api).filter(({ responses }) =>
    responses.some(({ content }) => [...content.keys()].some(isJson)),
  )
  const archive = api.operations.find(({ path }) => path.endsWith('/artifacts/archive'))
  const beside = archive?.path.slice(0, -'/archive'.length)
  const operation =
    lists.find(({ path }) => path === beside) ??
    lists.find((list) => answers(api, list, 'artifact')) ??
    lists.find(({ path }) => /artifact/i.test(lastWord(path)))
  return operation === undefined ? noRoute('list of the artifacts of a session') : routeOf(operation)
}

export function aboutSession(api: OpenApi): Operation[] {
  return api.operations.filter(
    ({ method, path }) => method === 'GET' && parametersOf(path).length === 1 && canFill(path, ['session']),
  )
}

/** True when a JSON answer is, or lists, resources whose `object` is `kind`. */
export function answers(api: OpenApi, operation: Operation, kind: string): boolean {
  return operation.responses.some(({ status, content }) => {
    if (!status.startsWith('2')) return false
    const schema = [...content].find(([type]) => isJson(type))?.[1]
    return shapesOf(api, schema).some(({ fields }) => {
      const entries = api.resolve(api.resolve(fields.get('data'))?.['items'])
      const resources = [fields, ...shapesOf(api, entries).map((shape) => shape.fields)]
      return resources.some((resource) => choicesOf(api, resource.get('object'))?.includes(kind))
    })
  })
}
