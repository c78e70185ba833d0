import { Type } from 'typebox'
import { CONNECTORS, type Credential } from '../model.ts'
import { operation, shape, type Operation } from '../operation.ts'
import { pageOf, placeById, plainPage } from '../page.ts'
import type { OpenDetails } from '../profile/details.ts'
import { notFound } from '../refusal.ts'
import { touch } from '../session.ts'
import { viewList } from '../view.ts'
import type { World } from '../world.ts'

const connection = Type.Object(
  {
    key: Type.String({ minLength: 1 }),
    provider: Type.Optional(
      Type.String({
        description: 'A connector id; may be omitted when the prefix of the key identifies it.',
      }),
    ),
    model: Type.Optional(Type.String({ description: "Left out: the connector's default." })),
    base_url: Type.Optional(Type.String()),
    label: Type.Optional(Type.String({ description: "Left out: the provider's name." })),
    is_default: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)

/** Model connectors and connections. */
export function modelOperations(details: OpenDetails): Operation[] {
  return [
    operation({
      id: 'listModelConnectors',
      method: 'GET',
      path: '/v1/model-connectors',
      summary: 'List the providers that can be connected',
      access: details.auth.modelReadScope,
      cost: 'read',
      success: { status: 200, description: 'All of them.', schema: shape('ModelConnectorList') },
      handle: () => ({
        status: 200,
        body: viewList(details, { rows: [...CONNECTORS], hasMore: false }, (connector) =>
          viewConnector(details, connector),
        ),
      }),
    }),
    operation({
      id: 'listModelCredentials',
      method: 'GET',
      path: '/v1/model-credentials',
      summary: 'List model connections',
      access: details.auth.modelReadScope,
      cost: 'read',
      query: plainPage,
      success: {
        status: 200,
        description: 'One page: ids, names and models.',
        schema: shape('ModelCredentialList'),
      },
      handle: ({ world, query }) => {
        const all = world.models.all()
        return { status: 200, body: viewList(details, pageOf(all, query, placeById(all)), viewListed) }
      },
    }),
    operation({
      id: 'connectModel',
      method: 'POST',
      path: '/v1/model-credentials',
      summary: 'Connect a model with a key of its provider',
      access: 'credentials:write',
      cost: 'write',
      idempotent: true,
      body: connection,
      success: {
        status: 201,
        description: 'The connection; the key is never shown.',
        schema: shape('NewModelCredential'),
      },
      handle: ({ world, body }) => {
        const { models, limits, ledger, clock } = world
        const credential = models.connect(body, limits.modelConnections, details.disconnect, (probe) =>
          ledger.probe({ at: clock.now(), ...probe }),
        )
        return { status: 201, body: viewNew(credential) }
      },
    }),
    operation({
      id: 'disconnectModel',
      ...details.disconnect,
      summary: 'Remove a model connection; its sessions move to another one',
      access: 'credentials:write',
      cost: 'write',
      success: {
        status: 200,
        description: 'The consequence for its sessions.',
        schema: Type.Object({
          sessions_moved: Type.Integer(),
          moved_to: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
        }),
      },
      refusals: [404],
      handle: ({ world, params }) => {
        const id = params['credential_id'] ?? ''
        const gone = world.models.disconnect(id)
        if (gone === undefined) throw notFound('model connection', id)
        return { status: 200, body: moveSessions(world, gone) }
      },
    }),
  ]
}

function moveSessions(world: World, gone: Credential): { sessions_moved: number; moved_to: string | null } {
  const heir = world.models.fallback()
  const moved = world.sessions.live().filter((session) => session.agent.credentialId === gone.id)
  for (const session of moved) {
    session.agent.credentialId = heir?.id ?? null
    session.agent.model = heir?.model ?? null
    touch(session, world.clock.now())
  }
  return { sessions_moved: moved.length, moved_to: heir?.id ?? null }
}

function viewConnector(details: OpenDetails, connector: (typeof CONNECTORS)[number]) {
  const { id, name, defaultModel, keyPrefix } = connector
  const open = { [details.connectorName]: name }
  return { object: 'model_connector', id, ...open, default_model: defaultModel, key_prefix: keyPrefix }
}

/** Ids, names and models only. */
function viewListed({ id, label, model }: Credential) {
  return { object: 'model_credential', id, label, model }
}

function viewNew(credential: Credential) {
  const { connector, isDefault, key } = credential
  return { ...viewListed(credential), connector, is_default: isDefault, last4: key.slice(-4), verified: true }
}
