import { operation, type Operation } from '../operation.ts'
import type { OpenDetails } from '../profile/details.ts'
import { invalid, refuse } from '../refusal.ts'
import { unreachableRequired } from '../mcp.ts'
import { touch, type Session } from '../session.ts'
import type { World } from '../world.ts'
import { findSession } from './find.ts'

const PATH = '/v1/sessions/{session_id}/preview'

/**
 * Publishes a port of the sandbox at a public address, if the deployment has a domain for previews.
 */
export function previewOperations(details: OpenDetails): Operation[] {
  return [
    operation({
      id: 'publishPreview',
      method: 'POST',
      path: PATH,
      summary: 'Publish a port of the sandbox at a public address',
      access: 'sessions:write',
      cost: 'write',
      idempotent: true,
      body: details.preview.body,
      bodyOptional: true,
      success: { status: 200, description: 'The address.', schema: details.preview.replyShape },
      refusals: [404, 409],
      handle: ({ world, params, body }) => {
        const session = findSession(world, params['session_id'])
        if (world.previewDomain === null) {
          throw refuse('not_found', 'this deployment has no base domain to publish previews under')
        }
        const obstacle = unreachableRequired(world, session)
        if (obstacle !== undefined) throw invalid(obstacle)
        const port = details.preview.readPort(body) ?? session.preview.port
        if (port === null) throw refuse('conflict', 'the agent serves nothing yet')
        setPublished(world, session, port, `https://${session.id}.${world.previewDomain}`)
        return { status: 200, body: view(details, session) }
      },
    }),
    operation({
      id: 'unpublishPreview',
      method: 'DELETE',
      path: PATH,
      summary: 'Take the public address down',
      access: 'sessions:write',
      cost: 'write',
      success: { status: 200, description: 'Nothing is published.', schema: details.preview.replyShape },
      refusals: [404],
      handle: ({ world, params }) => {
        const session = findSession(world, params['session_id'])
        setPublished(world, session, session.preview.port, null)
        return { status: 200, body: view(details, session) }
      },
    }),
  ]
}

function setPublished(
  world: World,
  session: Session,
  port: number | null,
  publishedUrl: string | null,
): void {
  session.preview = { ...session.preview, port, publishedUrl }
  touch(session, world.clock.now())
}

function view(details: OpenDetails, { id, preview }: Session): Record<string, unknown> {
  return details.preview.reply({ sessionId: id, port: preview.port, url: preview.publishedUrl })
}
