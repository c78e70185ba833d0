import { Refusal } from './refusal.ts'
import type { Session } from './session.ts'
import type { World } from './world.ts'

/**
 * A session keeps the runtime with which it was created (rule VER-16).
 * @throws {Refusal} `bridge_incompatible` when it is older than the requested `feature`.
 */
export function needRuntime(
  world: World,
  session: Session,
  feature: 'instructions' | 'host functions' | 'session tools',
): void {
  if (session.runtime === 'current') return
  throw new Refusal(
    world.details.bridgeIncompatibleStatus,
    'bridge_incompatible',
    `the workspace of this session has a runtime that is older than ${feature}; create a new session`,
  )
}
