import { CONNECTORS } from '../model.ts'
import { operation, shape, type Operation } from '../operation.ts'
import { pageOf, placeById, plainPage } from '../page.ts'
import type { OpenDetails } from '../profile/details.ts'
import { viewList } from '../view.ts'

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
      handle: () => {
        const page = { rows: [...CONNECTORS], hasMore: false }
        const view = ({ id, name, defaultModel, keyPrefix }: (typeof CONNECTORS)[number]) => ({
          object: 'model_connector',
          id,
          name,
          default_model: defaultModel,
          key_prefix: keyPrefix,
        })
        return { status: 200, body: viewList(details, page, view) }
      },
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
        const page = pageOf(all, query, placeById(all))
        const view = ({ id, label, model }: (typeof all)[number]) => ({
          object: 'model_credential',
          id,
          label,
          model,
        })
        return { status: 200, body: viewList(details, page, view) }
      },
    }),
  ]
}
