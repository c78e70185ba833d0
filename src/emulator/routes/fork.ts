import { operation, shape, type Operation } from '../operation.ts'
import { newWorkspace } from '../sandbox.ts'
import { newSession, type Session } from '../session.ts'
import { viewSession } from '../view.ts'
import type { OpenDetails } from '../profile/details.ts'
import { findSession } from './find.ts'
import { takeSlot } from './session.ts'

/** Copies of sessions. */
export function forkOperations(details: OpenDetails): Operation[] {
  return [
    operation({
      id: 'forkSession',
      method: 'POST',
      path: '/v1/sessions/{session_id}/fork',
      summary: 'Copy a session and its workspace',
      access: 'sessions:write',
      cost: 'creation',
      idempotent: true,
      success: { status: 201, description: 'The copy, and its origin.', schema: shape('Fork') },
      refusals: [404],
      handle: ({ world, params, token }) => {
        const origin = findSession(world, params['session_id'])
        takeSlot(world)
        const copied = origin.workspace.exists
        const files = copied
          ? [...origin.workspace.files].flatMap(([path, { bytes }]) =>
              bytes === null ? [] : [{ path, bytes }],
            )
          : origin.files
        const { title, metadata, agent, text, repo, profiles } = structuredClone(portable(origin))
        const fork: Session = newSession(
          {
            title,
            metadata,
            agent,
            text,
            repo,
            profiles,
            files,
            source: 'api',
            tokenId: token.id,
            workspace: newWorkspace(world, () => fork),
          },
          world.clock.now(),
        )
        world.sessions.add(fork)
        world.webhooks.send('session.created', fork.id, null)
        const reply = { forked_from: origin.id, workspace_copied: copied }
        return { status: 201, body: details.fork(viewSession(details, fork), reply) }
      },
    }),
  ]
}

function portable({ title, metadata, agent, text, repo, profiles }: Session) {
  return { title, metadata, agent, text, repo, profiles }
}
