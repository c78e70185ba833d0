import { randomBytes } from 'node:crypto'
import type { Action, ActionType, Resolution } from './action.ts'
import { publish } from './publish.ts'
import { wakeWorkspace } from './sandbox.ts'
import type { Session } from './session.ts'
import { touch } from './session.ts'
import { setStatus } from './status.ts'
import type { Turn } from './turn.ts'
import type { World } from './world.ts'

interface Need {
  type: ActionType
  name: string
  arguments: unknown
  /** Milliseconds until a function call fails; null for no deadline. */
  deadlineMs: number | null
}

export interface Raised {
  action: Action
  resolved: Promise<Resolution>
}

/**
 * Puts everything in `needs` on the session's `required_actions` at once, and changes its status to `requires_action`;
 * the turn stays `working`. Each answer, expiry or loss resolves its promise.
 */
export function requireActions(world: World, session: Session, turn: Turn, needs: readonly Need[]): Raised[] {
  const raised = needs.map((need) => raise(world, session, turn, need))
  setStatus(world, session, 'requires_action')
  // A session that waits for a person or a program does no work, so its workspace may pause.
  session.workspace.idle()
  return raised
}

function raise(world: World, session: Session, turn: Turn, need: Need): Raised {
  const { promise, resolve } = Promise.withResolvers<Resolution>()
  const createdAt = world.clock.now()
  const { deadlineMs } = need
  const action: Action = {
    type: need.type,
    sessionId: session.id,
    turnId: turn.id,
    callId: `call_${randomBytes(12).toString('hex')}`,
    name: need.name,
    arguments: need.arguments,
    createdAt,
    expiresAt: deadlineMs === null ? null : createdAt + deadlineMs,
    resolution: null,
    resolvedAt: null,
    deadline:
      deadlineMs === null
        ? null
        : world.clock.after(deadlineMs, () => resolveAction(world, session, action, { kind: 'expired' })),
    resolve,
  }
  session.actions.push(action)
  world.ledger.action(action)
  return { action, resolved: promise }
}

/** Removes the action from the session. When none is left, the session works again. A second call has no effect. */
export function resolveAction(world: World, session: Session, action: Action, resolution: Resolution): void {
  if (action.resolution !== null) return
  settle(world, session, action, resolution)
  if (resolution.kind === 'turn_over') return touch(session, world.clock.now())
  if (session.actions.length === 0) goOn(world, session, action.turnId)
  else waitOn(world, session)
  action.resolve(resolution)
}

/** The sandbox held none of the calls: all answers that the turn waited for are lost. */
export function loseActions(world: World, session: Session): void {
  const lost = [...session.actions]
  for (const action of lost) settle(world, session, action, { kind: 'lost' })
  goOn(world, session, session.run?.turn?.id ?? null)
  for (const action of lost) action.resolve({ kind: 'lost' })
}

/** Removes all actions of a session whose turn has ended. */
export function dropActions(world: World, session: Session): void {
  for (const action of session.actions.slice()) resolveAction(world, session, action, { kind: 'turn_over' })
}

/** A workspace that was resumed for this answer may pause again, because other actions are still required. */
function waitOn(world: World, session: Session): void {
  touch(session, world.clock.now())
  session.workspace.idle()
}

/** No action is required any more, so the turn continues. Its workspace may be paused. */
function goOn(world: World, session: Session, turnId: string | null): void {
  wakeWorkspace(world, session, turnId)
  setStatus(world, session, 'working')
}

function settle(world: World, session: Session, action: Action, resolution: Resolution): void {
  action.deadline?.cancel()
  action.resolution = resolution
  action.resolvedAt = world.clock.now()
  session.actions = session.actions.filter((candidate) => candidate !== action)
  if (action.type !== 'function_call') return
  publish(world, session, action.turnId, 'tool.resolved', {
    stated: { name: action.name },
    open: { call_id: action.callId, resolution: resolution.kind },
  })
}
