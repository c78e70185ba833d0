import { Type } from 'typebox'
import { operation, shape, type Operation } from '../operation.ts'
import type { OpenDetails } from '../profile/details.ts'
import { needRuntime } from '../runtime.ts'
import { touch, type Session } from '../session.ts'
import { checkTools, toolsSchema, viewTools } from '../tool.ts'
import { findSession } from './find.ts'
import { textSchema } from './session-body.ts'

const PATH = '/v1/sessions/{session_id}/tools'

/** The tools of a session. */
export function toolOperations(details: OpenDetails): Operation[] {
  return [
    operation({
      id: 'getSessionTools',
      method: 'GET',
      path: PATH,
      summary: 'Read the tools of a session',
      access: 'sessions:read',
      cost: 'read',
      success: { status: 200, description: 'The tools, secrets withheld.', schema: shape('SessionTools') },
      refusals: [404],
      handle: ({ world, params }) => ({ status: 200, body: view(findSession(world, params['session_id'])) }),
    }),
    operation({
      id: 'replaceSessionTools',
      method: 'PUT',
      path: PATH,
      summary: 'Replace the tools of a session as a whole',
      access: 'sessions:write',
      cost: 'write',
      body: Type.Object(
        { tools: toolsSchema, text: Type.Optional(textSchema(details)) },
        { additionalProperties: false },
      ),
      success: { status: 200, description: 'The updated configuration.', schema: shape('SessionTools') },
      refusals: [404, details.bridgeIncompatibleStatus],
      handle: ({ world, params, body: { tools, text } }) => {
        const session = findSession(world, params['session_id'])
        const hostFunctions = tools.some(({ type }) => type === 'function')
        needRuntime(world, session, hostFunctions ? 'host functions' : 'session tools')
        checkTools(tools)
        session.agent.tools = tools
        session.serversStarted = false
        session.bridgeReadyAt = world.clock.now() + world.limits.bridgeRestartMs
        if (text !== undefined) session.text = text as Record<string, unknown>
        touch(session, world.clock.now())
        return { status: 200, body: view(session) }
      },
    }),
  ]
}

function view(session: Session): Record<string, unknown> {
  return {
    object: 'session.tools',
    session_id: session.id,
    tools: viewTools(session.agent.tools),
    text: session.text === null ? null : { verbosity: null, format: null, ...session.text },
  }
}
