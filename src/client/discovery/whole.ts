import type { Json } from '../../std/json.ts'
import { findMessage, findSteering, textFieldOf } from './body.ts'
import { discoverIn } from './discovery.ts'
import type { Finding, OperationName } from './discovery.ts'
import { messageBodyOf } from './find.ts'
import {
  findAgentDelete,
  findAgentSave,
  findArtifactDelete,
  findCancel,
  findDisconnect,
  findPortField,
  findSnapshotParameter,
  findTemplateSave,
} from './find-operation.ts'
import { OpenApi } from './openapi.ts'
import type { Method } from './openapi.ts'
import type { Template } from '../../std/template.ts'
import type { Named } from './parameters.ts'
import { fixedRoute, operationAt, overriddenRoute } from './route.ts'
import type { NoRoute, Route, RouteOverrides } from './route.ts'
import { shapesOf, takesText } from './schema.ts'

/** Every operation of the interface. */
export type WholeName =
  | OperationName
  | 'createSession'
  | 'updateSession'
  | 'deleteSession'
  | 'forkSession'
  | 'readTools'
  | 'replaceTools'
  | 'publishPreview'
  | 'unpublishPreview'
  | 'cancelTurn'
  | 'writeFiles'
  | 'refreshFiles'
  | 'listFiles'
  | 'readFile'
  | 'readArchive'
  | 'readArtifact'
  | 'deleteArtifact'
  | 'listConnectors'
  | 'listCredentials'
  | 'connect'
  | 'disconnect'
  | 'listAgents'
  | 'readAgent'
  | 'saveAgent'
  | 'deleteAgent'
  | 'readTemplate'
  | 'saveTemplate'
  | 'listProfiles'

export interface WholeDiscovery extends Finding<WholeName> {
  /** The body of a message that steers; null when it cannot be sent. */
  steerBody: Template | null
  /** The value of `input` for a new session; null when it is unknown. */
  inputBody: Json | null
  /** The query parameter of the file listing that requests a new snapshot. */
  snapshotParameter: string | null
  /** The field of a preview's body for the port. */
  portField: string | null
}

/** Paths and words that discovery cannot find, or finds wrongly. */
export interface WholeOverrides extends RouteOverrides {
  /** JSON, as text or as a value, with `{{text}}` in it. */
  steer_body?: Json
  input_body?: Json
  cancel_path?: string
  artifacts_path?: string
  artifact_path?: string
  disconnect_path?: string
  save_agent_path?: string
  agent_path?: string
  save_template_path?: string
  snapshot_parameter?: string
  port_field?: string
}

type PathKey = Extract<keyof WholeOverrides, `${string}_path`>

/**
 * The routes for a client of the whole interface, found in the same way as `discover` finds those of the sidecar.
 * @throws {OperatorError} on an override that cannot be used.
 */
export function discoverWhole(document: unknown, overrides: WholeOverrides = {}): WholeDiscovery {
  const api = new OpenApi(document)
  const basis = discoverIn(api, overrides)
  const given = (key: PathKey, method: Method, ids: readonly Named[]): Route | null =>
    overriddenRoute<PathKey>(api, overrides, key, method, ids)
  const listArtifacts = given('artifacts_path', 'GET', ['session']) ?? basis.routes.listArtifacts
  const { sendMessage } = basis.routes
  return {
    ...basis,
    routes: {
      ...basis.routes,
      ...namedRoutes(api),
      listArtifacts,
      cancelTurn: given('cancel_path', 'POST', ['session', 'turn']) ?? findCancel(api),
      deleteArtifact:
        given('artifact_path', 'DELETE', ['session', 'artifact']) ?? findArtifactDelete(api, listArtifacts),
      disconnect: disconnectRoute(api, overrides) ?? findDisconnect(api),
      saveAgent: given('save_agent_path', 'POST', []) ?? findAgentSave(api),
      deleteAgent: given('agent_path', 'DELETE', ['agent']) ?? findAgentDelete(api),
      saveTemplate: given('save_template_path', 'POST', []) ?? findTemplateSave(api),
    },
    steerBody: messageBodyOf(overrides.steer_body, 'steer_body') ?? steerBodyOf(api, sendMessage),
    inputBody: messageBodyOf(overrides.input_body, 'input_body') ?? inputBodyOf(api),
    snapshotParameter: overrides.snapshot_parameter ?? findSnapshotParameter(api),
    portField: overrides.port_field ?? findPortField(api),
  }
}

type NamedRoutes = Record<
  Exclude<
    WholeName,
    | OperationName
    | 'cancelTurn'
    | 'deleteArtifact'
    | 'disconnect'
    | 'saveAgent'
    | 'deleteAgent'
    | 'saveTemplate'
  >,
  Route
>

/** The paths that the interface names. */
function namedRoutes(api: OpenApi): NamedRoutes {
  const session = '/v1/sessions/{session_id}'
  return {
    createSession: fixedRoute(api, 'POST', '/v1/sessions'),
    updateSession: fixedRoute(api, 'PATCH', session),
    deleteSession: fixedRoute(api, 'DELETE', session),
    forkSession: fixedRoute(api, 'POST', `${session}/fork`),
    readTools: fixedRoute(api, 'GET', `${session}/tools`),
    replaceTools: fixedRoute(api, 'PUT', `${session}/tools`),
    publishPreview: fixedRoute(api, 'POST', `${session}/preview`),
    unpublishPreview: fixedRoute(api, 'DELETE', `${session}/preview`),
    writeFiles: fixedRoute(api, 'POST', `${session}/files`),
    refreshFiles: fixedRoute(api, 'POST', `${session}/files/refresh`),
    listFiles: fixedRoute(api, 'GET', `${session}/files`),
    readFile: fixedRoute(api, 'GET', `${session}/files/content`),
    readArchive: fixedRoute(api, 'GET', `${session}/artifacts/archive`),
    readArtifact: fixedRoute(api, 'GET', `${session}/artifacts/{artifact_id}/content`),
    listConnectors: fixedRoute(api, 'GET', '/v1/model-connectors'),
    listCredentials: fixedRoute(api, 'GET', '/v1/model-credentials'),
    connect: fixedRoute(api, 'POST', '/v1/model-credentials'),
    listAgents: fixedRoute(api, 'GET', '/v1/agents'),
    readAgent: fixedRoute(api, 'GET', '/v1/agents/{agent_id}'),
    readTemplate: fixedRoute(api, 'GET', '/v1/environment-templates/{template_id}'),
    listProfiles: fixedRoute(api, 'GET', '/v1/environment-profiles'),
  }
}

/**
 * The interface specifies neither path nor method: DELETE is assumed, unless the document has a POST at that path.
 */
function disconnectRoute(api: OpenApi, overrides: WholeOverrides): Route | null {
  const at = overrides.disconnect_path
  const method = at !== undefined && operationAt(api, 'POST', at) !== undefined ? 'POST' : 'DELETE'
  return overriddenRoute<PathKey>(api, overrides, 'disconnect_path', method, ['credential'])
}

function steerBodyOf(api: OpenApi, message: Route | NoRoute): Template | null {
  const body = message.found ? operationAt(api, 'POST', message.path)?.body : null
  return findSteering(api, body)?.template ?? null
}

/** A message in the form for `input`: typed, or an object with only the text, or the text itself. */
function inputBodyOf(api: OpenApi): Json | null {
  const create = operationAt(api, 'POST', '/v1/sessions')
  for (const { fields } of shapesOf(api, create?.body)) {
    const input = fields.get('input')
    const typed = findMessage(api, input)?.template
    if (typed !== undefined) return typed
    for (const shape of shapesOf(api, input)) {
      const field = textFieldOf(api, shape, '')
      if (field !== null) return { [field]: '{{text}}' }
    }
    if (takesText(api, input)) return '{{text}}'
  }
  return null
}
