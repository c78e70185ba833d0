import { randomBytes } from 'node:crypto'
import { publish } from '../publish.ts'
import type { Run } from '../run.ts'
import type { Session } from '../session.ts'
import type { Turn } from '../turn.ts'
import type { World } from '../world.ts'

/** Where a step is performed. */
export interface Scene {
  readonly world: World
  readonly session: Session
  readonly run: Run
  readonly turn: Turn
}

/** Names a tool call of the agent's own, which nobody is asked to answer. */
export function newCallId(): string {
  return `call_${randomBytes(12).toString('hex')}`
}

/** Publishes what the agent reads as the outcome of a tool call. */
export function publishResult(
  { world, session, turn }: Scene,
  result: { name: string; callId: string; output: string; failed: boolean },
): void {
  publish(world, session, turn.id, 'agent.tool_result', {
    stated: { toolName: result.name },
    open: { call_id: result.callId, output: result.output, is_error: result.failed },
  })
}
