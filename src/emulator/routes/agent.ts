import { Type } from 'typebox'
import { operation, shape, type Operation } from '../operation.ts'
import { pageOf, placeById, plainPage } from '../page.ts'
import type { OpenDetails } from '../profile/details.ts'
import { notFound } from '../refusal.ts'
import type { SavedAgent } from '../saved-agent.ts'
import { checkTools, toolsSchema, viewTools } from '../tool.ts'
import { viewList } from '../view.ts'
import type { World } from '../world.ts'
import { textSchema } from './session-body.ts'

/** The variables of the one environment profile that there is. */
const PROFILES = [
  { object: 'environment_profile', id: 'envp_default', name: 'default', is_default: true, variable_count: 0 },
]

/** True for the id of a profile that sessions may name. */
export function isProfile(id: string): boolean {
  return PROFILES.some((profile) => profile.id === id)
}

/** Saved agents, their deprecated alias, and environment profiles. */
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
        const all = world.savedAgents.all()
        return { status: 200, body: viewList(details, pageOf(all, query, placeById(all)), viewAgent) }
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
        const agent = {
          name,
          model: credential.model,
          credentialId: model_credential_id ?? null,
          instructions,
          tools,
          text: (text as Record<string, unknown> | undefined) ?? null,
        }
        const saved = world.savedAgents.save(agent, world.limits.savedAgents, world.clock.now())
        return { status: 201, body: viewAgent(saved) }
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
      handle: ({ world, params }) => ({ status: 200, body: viewAgent(findAgent(world, params['agent_id'])) }),
    }),
    operation({
      id: 'deleteAgent',
      method: 'DELETE',
      path: deleteAgent,
      summary: 'Delete a saved agent; sessions made from it stay as they are',
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
    operation({
      id: 'getEnvironmentTemplate',
      method: 'GET',
      path: '/v1/environment-templates/{template_id}',
      summary: 'Read a saved agent as an environment template',
      access: 'sessions:read',
      cost: 'read',
      deprecated: true,
      success: { status: 200, description: 'The template.', schema: shape('EnvironmentTemplate') },
      refusals: [404],
      handle: ({ world, params }) => ({
        status: 200,
        body: viewTemplate(findAgent(world, params['template_id'])),
      }),
    }),
    operation({
      id: 'listEnvironmentProfiles',
      method: 'GET',
      path: '/v1/environment-profiles',
      summary: 'List environment profiles',
      access: 'sessions:read',
      cost: 'read',
      query: plainPage,
      success: { status: 200, description: 'One page.', schema: shape('EnvironmentProfileList') },
      handle: ({ query }) => {
        const page = pageOf(PROFILES, query, placeById(PROFILES))
        return { status: 200, body: viewList(details, page, (profile) => profile) }
      },
    }),
  ]
}

function agentBody(details: OpenDetails) {
  return Type.Object(
    {
      name: Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,63}$', description: 'A slug; not an identifier.' }),
      model: Type.Optional(Type.String()),
      model_credential_id: Type.Optional(Type.Union([Type.String(), Type.Null()])),
      instructions: Type.Optional(Type.String({ maxLength: 32_000 })),
      tools: Type.Optional(toolsSchema),
      text: Type.Optional(textSchema(details)),
    },
    { additionalProperties: false },
  )
}

function findAgent(world: World, id: string | undefined): SavedAgent {
  const agent = world.savedAgents.find(id ?? '')
  if (agent === undefined) throw notFound('saved agent', id ?? '')
  return agent
}

function viewAgent(agent: SavedAgent): Record<string, unknown> {
  const { model, credentialId, instructions } = agent
  return { ...viewTemplate(agent), object: 'agent', model, model_credential_id: credentialId, instructions }
}

function viewTemplate({ id, name, tools, text, createdAt }: SavedAgent): Record<string, unknown> {
  return {
    object: 'environment_template',
    id,
    name,
    tools: viewTools(tools),
    text: text ?? {},
    created_at: createdAt,
  }
}
