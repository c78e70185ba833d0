import type { Action, Resolution } from './action.ts'
import type { Outcome } from './profile/details.ts'
import { loseActions, resolveAction } from './requirement.ts'
import { recover } from './sandbox.ts'
import type { Session } from './session.ts'
import type { World } from './world.ts'

export type Given = { kind: 'output' | 'error'; text: string }

/** The reply to an answer whose call is already resolved. */
const AFTERWARDS: Readonly<Record<Resolution['kind'], Outcome>> = {
  output: 'repeated',
  error: 'repeated',
  answered: 'repeated',
  approved: 'repeated',
  expired: 'expired',
  lost: 'not_delivered',
  turn_over: 'not_delivered',
}

/**
 * Accepts a client's answer to a function call. An answer to a call that was answered or has expired changes nothing.
 * If the workspace no longer holds the call, every call of its turn is lost.
 */
export function takeAnswer(world: World, session: Session, action: Action, given: Given): Outcome {
  if (action.resolution === null) {
    // Only a workspace that exists holds the call.
    if (world.faults.use('not_delivered') || !recover(world, session, action.turnId)) {
      loseActions(world, session)
      return 'not_delivered'
    }
    if (!world.faults.use('keep_answered')) resolveAction(world, session, action, given)
    return 'delivered'
  }
  return AFTERWARDS[action.resolution.kind]
}
