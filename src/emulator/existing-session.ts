import { newWorkspace } from './sandbox.ts'
import { newSession, type Session } from './session.ts'
import type { World } from './world.ts'

/**
 * Creates the sessions that existed before the scenario: from the Console, from the CLI, or very
 * old ones.
 */
export function makeExistingSessions(world: World): void {
  const model = world.models.fallback()
  const [token] = world.tokens.all()
  for (const { title, metadata = {}, source = null } of world.scenario.deployment?.sessions ?? []) {
    const session: Session = newSession(
      {
        title,
        metadata,
        source,
        tokenId: token?.id ?? '',
        agent: {
          id: null,
          model: model?.model ?? null,
          credentialId: model?.id ?? null,
          instructions: '',
          approvalMode: world.details.approvalModes.automatic,
          permissionRules: [],
          tools: undefined,
        },
        text: null,
        repo: null,
        files: [],
        profiles: [],
        workspace: newWorkspace(world, () => session),
      },
      world.clock.now(),
    )
    world.sessions.add(session)
  }
}
