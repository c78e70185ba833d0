import type { PermissionRule } from './policy.ts'
import type { Session } from './session.ts'
import type { World } from './world.ts'

/** The settings of one turn, copied when the turn began: a PATCH takes effect on the next turn. */
export interface Settings {
  readonly instructions: string
  readonly approvalMode: string
  readonly permissionRules: readonly PermissionRule[]
}

export function settingsNow({ details }: World, session: Session): Settings {
  const { agent, workspace, builtInstructions } = session
  const kept = workspace.exists && details.instructionsHold === 'workspace'
  return {
    instructions: kept ? builtInstructions : agent.instructions,
    approvalMode: agent.approvalMode,
    permissionRules: agent.permissionRules,
  }
}
