import { decisionOn } from '../approval.ts'
import type { Attempt } from '../policy.ts'
import { publish } from '../publish.ts'
import { requireActions } from '../requirement.ts'
import { settled } from './call.ts'
import { newCallId, type Scene } from './scene.ts'

/** Requests a person's approval; true once it was given. `line` is the text shown to the person. */
export async function approvedByPerson(scene: Scene, tool: string, line: string): Promise<boolean> {
  const { world, session, turn } = scene
  const need = { type: 'approval' as const, name: tool, arguments: { line }, deadlineMs: null }
  const [raised] = requireActions(world, session, turn, [need])
  if (raised === undefined) return false
  const { callId } = raised.action
  publish(world, session, turn.id, 'approval.requested', {
    stated: { name: tool },
    open: { call_id: callId, line },
  })
  const resolution = await settled(scene, raised)
  const approved = resolution.kind === 'approved' && resolution.approved
  const message = approved ? 'A person approved this.' : 'A person did not approve this.'
  publish(world, session, turn.id, 'approval.resolved', {
    stated: { approved, toolCallId: callId, name: tool, ...world.details.personalApprovalCode, message },
  })
  return approved
}

/** Asks a person a question; their words become `{{last}}`. */
export async function ask(scene: Scene, question: string): Promise<void> {
  const { world, session, run, turn } = scene
  const need = { type: 'question' as const, name: '', arguments: question, deadlineMs: null }
  const [raised] = requireActions(world, session, turn, [need])
  if (raised === undefined) return
  const call_id = raised.action.callId
  publish(world, session, turn.id, 'question.asked', { open: { call_id, question } })
  const resolution = await settled(scene, raised)
  run.last = resolution.kind === 'answered' ? resolution.text : ''
  publish(world, session, turn.id, 'question.answered', { open: { call_id, answer: run.last } })
}

/**
 * Whether the rules and the mode of the session allow the step, with a person's approval if they,
 * or `line`, require it. The agent gets the reason for a denial.
 */
export async function permitted(scene: Scene, attempt: Attempt | null, line?: string): Promise<boolean> {
  if (attempt === null) return true
  const { world, session, turn, settings } = scene
  const decision = decisionOn(world, settings, attempt)
  if (decision.verdict === 'allow' && line === undefined) return true
  if (decision.verdict !== 'deny') {
    return approvedByPerson(scene, attempt.tool, line ?? lineOf(attempt))
  }
  const { code, sentence } = decision
  publish(world, session, turn.id, 'approval.resolved', {
    stated: { approved: false, toolCallId: newCallId(), name: attempt.tool, code, message: sentence },
  })
  return false
}

/** The attempt in words, for the person who decides. */
function lineOf({ tool, command, path, domain }: Attempt): string {
  return [tool, command ?? path ?? domain ?? ''].join(' ').trim()
}
