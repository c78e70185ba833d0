import type { Action } from './action.ts'
import { invalid, notFound, refuse } from './refusal.ts'
import { resolveAction } from './requirement.ts'
import type { World } from './world.ts'

/** A person's answer in the Console to an approval or a question. */
export type Verdict = { approved: boolean } | { answer: string }

/**
 * Resolves an approval or a question.
 * @throws {Refusal} 404 for an unknown call, 409 for one that is resolved, 400 for the wrong kind of verdict.
 */
export function resolveByPerson(world: World, callId: string, verdict: Verdict): Action {
  const [session, action] = findPending(world, callId)
  if ('approved' in verdict) {
    if (action.type !== 'approval') throw invalid(`${callId} is a ${action.type}, not an approval`)
    resolveAction(world, session, action, { kind: 'approved', approved: verdict.approved })
  } else {
    if (action.type !== 'question') throw invalid(`${callId} is a ${action.type}, not a question`)
    resolveAction(world, session, action, { kind: 'answered', text: verdict.answer })
  }
  return action
}

function findPending(world: World, callId: string) {
  for (const session of world.sessions.live()) {
    const action = session.actions.find((candidate) => candidate.callId === callId)
    if (action !== undefined) return [session, action] as const
  }
  const past = world.ledger.actions.all().some((action) => action.callId === callId)
  throw past ? refuse('conflict', `${callId} is resolved already`) : notFound('action', callId)
}
