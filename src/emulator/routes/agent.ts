import { Type } from 'typebox'
import { operation, shape, type Operation } from '../operation.ts'
import { pageOf, placeById, plainPage } from '../page.ts'
import type { OpenDetails } from '../profile/details.ts'
import { notFound } from '../refusal.ts'
import type { SavedAgent } from '../saved-agent.ts'
import { checkTools } from '../tool.ts'
import { viewList } from '../view.ts'
import type { World } from '../world.ts'
import { savedBody } from './saved-body.ts'
import { viewTemplate } from './template.ts'

export function agentOperations(details: OpenDetails): Operation[] {
  const { saveAgent, deleteAgent } = details.paths
  return [
    operation({
      id: 'listAgents',
      method: 'GET',
      path: '/v1/agents',
      summary: 'List saved agents',
      access: 'sessions:read',
      cost: 'read',
      query: plainPage,
      success: { status: 200, description: 'One page.', schema: shape('AgentList') },
      handle: ({ world, query }) => {
        const all = world.savedAgents.agents()
        const page = pageOf(all, query, placeById(all))
        return { status: 200, body: viewList(details, page, (agent) => viewAgent(world, agent)) }
      },
    }),
    operation({
      id: 'saveAgent',
      method: 'POST',
      path: saveAgent,
      summary: 'Save an agent, in place of the one with the same name',
      access: 'sessions:write',
      cost: 'write',
      idempotent: true,
      body: agentBody(details),
      success: { status: 201, description: 'The agent.', schema: shape('Agent') },
      handle: ({ world, body }) => {
        const { name, model, model_credential_id, instructions = '', tools, text } = body
        checkTools(tools ?? [])
        const credential = world.models.choose(model, model_credential_id ?? undefined)
        const chosen = model !== undefined || typeof model_credential_id === 'string'
        const agent = {
          template: false,
          name,
          model: chosen ? credential.model : null,
          credentialId: model_credential_id ?? null,
          instructions,
          tools,
          text: (text as Record<string, unknown> | undefined) ?? null,
        }
        const saved = world.savedAgents.save(agent, world.limits.savedAgents, world.clock.now())
        return { status: 201, body: viewAgent(world, saved) }
      },
    }),
    operation({
      id: 'getAgent',
      method: 'GET',
      path: '/v1/agents/{agent_id}',
      summary: 'Read a saved agent',
      access: 'sessions:read',
      cost: 'read',
      success: { status: 200, description: 'The agent.', schema: shape('Agent') },
      refusals: [404],
      handle: ({ world, params }) => ({
        status: 200,
        body: viewAgent(world, findAgent(world, params['agent_id'])),
      }),
    }),
    operation({
      id: 'deleteAgent',
      method: 'DELETE',
      path: deleteAgent,
      summary: 'Delete a saved agent; sessions created from it do not change',
      access: 'sessions:write',
      cost: 'write',
      success: { status: 200, description: 'Deleted.', schema: shape('Deleted') },
      refusals: [404],
      handle: ({ world, params }) => {
        const { id } = findAgent(world, params['agent_id'])
        world.savedAgents.remove(id)
        return { status: 200, body: { object: 'agent', id, deleted: true } }
      },
    }),
  ]
}

function agentBody(details: OpenDetails) {
  return Type.Object(
    {
      ...savedBody(details),
      model: Type.Optional(Type.String()),
      model_credential_id: Type.Optional(Type.Union([Type.String(), Type.Null()])),
      instructions: Type.Optional(Type.String({ maxLength: 32_000 })),
    },
    { additionalProperties: false },
  )
}

function findAgent(world: World, id: string | undefined): SavedAgent {
  const agent = world.savedAgents.agent(id ?? '')
  if (agent === undefined) throw notFound('saved agent', id ?? '')
  return agent
}

/** An agent without a model shows the model of the current default connection. */
function viewAgent(world: World, agent: SavedAgent): Record<string, unknown> {
  return {
    ...viewTemplate(agent),
    object: 'agent',
    model: agent.model ?? world.models.fallback()?.model ?? '',
    model_credential_id: agent.credentialId,
    instructions: agent.instructions,
  }
}
