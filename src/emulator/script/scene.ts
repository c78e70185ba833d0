import { randomBytes } from 'node:crypto'
import { publish } from '../publish.ts'
import type { Run } from '../run.ts'
import type { Session } from '../session.ts'
import type { Settings } from '../settings.ts'
import type { Turn } from '../turn.ts'
import type { World } from '../world.ts'

/** The context of a step. */
export interface Scene {
  readonly world: World
  readonly session: Session
  readonly run: Run
  readonly turn: Turn
  readonly settings: Settings
}

/** Creates the id of a tool call of the agent itself, which no client answers. */
export function newCallId(): string {
  return `call_${randomBytes(12).toString('hex')}`
}

/**
 * Publishes a tool call of the agent itself and its outcome, which later steps use as `{{last}}`.
 */
export function publishCall(
  scene: Scene,
  of: { name: string; args: unknown; output: string; failed?: boolean },
): void {
  const { world, session, turn } = scene
  const callId = newCallId()
  publish(world, session, turn.id, 'agent.tool_call', {
    stated: { toolName: of.name, args: of.args },
    open: { call_id: callId },
  })
  publishResult(scene, { name: of.name, callId, output: of.output, failed: of.failed ?? false })
}

/** Publishes the outcome of a tool call. */
export function publishResult(
  { world, session, run, turn }: Scene,
  result: { name: string; callId: string; output: string; failed: boolean },
): void {
  publish(world, session, turn.id, 'agent.tool_result', {
    stated: { toolName: result.name },
    open: { call_id: result.callId, output: result.output, is_error: result.failed },
  })
  run.last = result.output
  run.outputs.set(result.name, result.output)
}
