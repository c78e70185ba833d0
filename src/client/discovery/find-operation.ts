import { aboutSession, answers } from './find.ts'
import { isJson } from './openapi.ts'
import type { OpenApi, Operation } from './openapi.ts'
import { canFill, endsInParameter, lastWord } from './path.ts'
import { parametersOf, type Named } from './parameters.ts'
import { noRoute, routeOf } from './route.ts'
import type { NoRoute, Route } from './route.ts'
import { shapesOf } from './schema.ts'

/** Finds the operations that only a complete client needs, and whose routes the interface does not specify. */

/**
 * The POST whose path ends in `cancel`, `stop` or a similar word. One for a turn is preferred to one for a session.
 */
export function findCancel(api: OpenApi): Route | NoRoute {
  const stops = api.operations.filter(
    ({ method, path }) =>
      method === 'POST' &&
      /^(cancel|interrupt|stop|abort|halt)/i.test(lastWord(path)) &&
      canFill(path, ['session', 'turn']) &&
      parametersOf(path).length > 0,
  )
  const ofTurn = stops.find(({ path }) => parametersOf(path).includes('turn'))
  return found(ofTurn ?? stops[0], 'POST that cancels a turn', 'cancel_path')
}

/** The DELETE of an artifact by its id: its path is below that of the list, or has a parameter for the artifact. */
export function findArtifactDelete(api: OpenApi, list: Route | NoRoute): Route | NoRoute {
  const deletes = deletesOf(api, 'artifact', ['session', 'artifact'])
  const below = list.found ? deletes.find(({ path }) => path.startsWith(`${list.path}/{`)) : undefined
  return found(below ?? deletes[0], 'DELETE of an artifact', 'artifact_path')
}

/** The POST that saves an agent: its body has a name and instructions. */
export function findAgentSave(api: OpenApi): Route | NoRoute {
  const saves = postsWith(api, ['name', 'instructions'])
  const ofAgents =
    saves.find((save) => answers(api, save, 'agent')) ?? saves.find(({ path }) => /agent/i.test(path))
  return found(ofAgents ?? saves[0], 'POST that saves an agent', 'save_agent_path')
}

export function findAgentDelete(api: OpenApi): Route | NoRoute {
  return found(deletesOf(api, 'agent', ['agent'])[0], 'DELETE of a saved agent', 'agent_path')
}

/** The POST whose answer is an environment template, or whose path ends in `templates` and whose body has a name. */
export function findTemplateSave(api: OpenApi): Route | NoRoute {
  const saves = postsWith(api, ['name', 'tools'])
  const ofTemplates =
    saves.find((save) => answers(api, save, 'environment_template')) ??
    saves.find(({ path }) => /template/i.test(lastWord(path)))
  return found(ofTemplates, 'POST that saves an environment template', 'save_template_path')
}

/** The operation whose answer has the field `sessions_moved`, else the DELETE of a model connection. */
export function findDisconnect(api: OpenApi): Route | NoRoute {
  const counting = api.operations.find(
    (operation) =>
      (operation.method === 'DELETE' || operation.method === 'POST') &&
      namesOne(operation.path, 'credential') &&
      answersWith(api, operation, 'sessions_moved'),
  )
  return found(
    counting ?? deletesOf(api, 'credential', ['credential'])[0],
    'operation that disconnects a model',
    'disconnect_path',
  )
}

/**
 * The query parameter of the file list that requests a new snapshot: the one whose name or description mentions it,
 * else the only one.
 */
export function findSnapshotParameter(api: OpenApi): string | null {
  const listing = aboutSession(api).find(({ path }) => path.endsWith('/files'))
  const own = (listing?.parameters ?? []).filter(
    ({ name, in: where }) => where === 'query' && !/^(limit|after|order|path)$/.test(name),
  )
  const about = /snapshot|refresh|fresh|capture|live/i
  const named = own.find(({ name, description }) => about.test(name) || about.test(description))
  return (named ?? (own.length === 1 ? own[0] : undefined))?.name ?? null
}

/** The field for the port in the body that publishes a preview. */
export function findPortField(api: OpenApi): string | null {
  const publish = api.operations.find(
    ({ method, path }) => method === 'POST' && path.endsWith('/preview') && canFill(path, ['session']),
  )
  const names = shapesOf(api, publish?.body).flatMap(({ fields }) => [...fields.keys()])
  return names.find((name) => /port/i.test(name)) ?? null
}

function deletesOf(api: OpenApi, kind: Named, ids: readonly Named[]): Operation[] {
  return api.operations.filter(
    ({ method, path }) =>
      method === 'DELETE' && endsInParameter(path) && namesOne(path, kind) && canFill(path, ids),
  )
}

function namesOne(path: string, kind: Named): boolean {
  return parametersOf(path).at(-1) === kind
}

function postsWith(api: OpenApi, names: readonly string[]): Operation[] {
  return api.operations.filter(
    ({ method, path, body }) =>
      method === 'POST' &&
      !path.includes('{') &&
      shapesOf(api, body).some(({ fields }) => names.every((name) => fields.has(name))),
  )
}

function answersWith(api: OpenApi, operation: Operation, field: string): boolean {
  return operation.responses.some(({ content }) => {
    const schema = [...content].find(([type]) => isJson(type))?.[1]
    return shapesOf(api, schema).some(({ fields }) => fields.has(field))
  })
}

function found(operation: Operation | undefined, what: string, key: string): Route | NoRoute {
  return operation === undefined ? noRoute(what, key) : routeOf(operation)
}
