import { decide, type Attempt, type Decision } from './policy.ts'
import type { Settings } from './settings.ts'
import type { World } from './world.ts'

/** The decision of a turn's rules and mode about `attempt`. */
export function decisionOn(world: World, settings: Settings, attempt: Attempt): Decision {
  return decide(attempt, settings.permissionRules, {
    readOnly: settings.approvalMode === 'read_only',
    asking: settings.approvalMode === world.details.approvalModes.asking,
  })
}
