import { Type } from 'typebox'
import { operation, shape, type Operation } from '../operation.ts'
import type { OpenDetails } from '../profile/details.ts'
import { notFound } from '../refusal.ts'
import type { SavedAgent } from '../saved-agent.ts'
import { checkTools, viewTools } from '../tool.ts'
import type { World } from '../world.ts'
import { savedBody } from './saved-body.ts'

/** Environment templates, the deprecated alias of saved agents. */
export function templateOperations(details: OpenDetails): Operation[] {
  const { saveTemplate, deleteTemplate } = details.paths
  return [
    operation({
      id: 'saveEnvironmentTemplate',
      method: 'POST',
      path: saveTemplate,
      summary: 'Save an environment template, in place of the one with the same name',
      access: 'sessions:write',
      cost: 'write',
      idempotent: true,
      deprecated: true,
      body: Type.Object(savedBody(details), { additionalProperties: false }),
      success: { status: 201, description: 'The template.', schema: shape('EnvironmentTemplate') },
      handle: ({ world, body }) => {
        const { name, tools, text } = body
        checkTools(tools ?? [])
        const template = {
          template: true,
          name,
          model: null,
          credentialId: null,
          instructions: '',
          tools,
          text: (text as Record<string, unknown> | undefined) ?? null,
        }
        const saved = world.savedAgents.save(template, world.limits.savedAgents, world.clock.now())
        return { status: 201, body: viewTemplate(saved) }
      },
    }),
    operation({
      id: 'getEnvironmentTemplate',
      method: 'GET',
      path: '/v1/environment-templates/{template_id}',
      summary: 'Read a template, or a saved agent as one',
      access: 'sessions:read',
      cost: 'read',
      deprecated: true,
      success: { status: 200, description: 'The template.', schema: shape('EnvironmentTemplate') },
      refusals: [404],
      handle: ({ world, params }) => ({
        status: 200,
        body: viewTemplate(findTemplate(world, params['template_id'])),
      }),
    }),
    operation({
      id: 'deleteEnvironmentTemplate',
      method: 'DELETE',
      path: deleteTemplate,
      summary: 'Delete a template; sessions created from it do not change',
      access: 'sessions:write',
      cost: 'write',
      deprecated: true,
      success: { status: 200, description: 'Deleted.', schema: shape('Deleted') },
      refusals: [404],
      handle: ({ world, params }) => {
        const { id } = findTemplate(world, params['template_id'])
        world.savedAgents.remove(id)
        return { status: 200, body: { object: 'environment_template', id, deleted: true } }
      },
    }),
  ]
}

/** The common fields of an agent and a template. */
export function viewTemplate({ id, name, tools, text, createdAt }: SavedAgent): Record<string, unknown> {
  return {
    object: 'environment_template',
    id,
    name,
    tools: viewTools(tools),
    text: text ?? {},
    created_at: createdAt,
  }
}

function findTemplate(world: World, id: string | undefined): SavedAgent {
  const saved = world.savedAgents.find(id ?? '')
  if (saved === undefined) throw notFound('environment template', id ?? '')
  return saved
}
