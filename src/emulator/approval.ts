import type { Session } from './session.ts'
import { decide, type Attempt, type Decision } from './policy.ts'
import type { World } from './world.ts'

/** What the session's rules and mode say to `attempt`. */
export function decisionOn(world: World, session: Session, attempt: Attempt): Decision {
  const { approvalMode, permissionRules } = session.agent
  return decide(attempt, permissionRules, {
    readOnly: approvalMode === 'read_only',
    asking: approvalMode === world.details.approvalModes.asking,
  })
}
