import type { Resolution } from '../action.ts'
import { publish } from '../publish.ts'
import { requireActions, type Raised } from '../requirement.ts'
import type { Session } from '../session.ts'
import { TurnEnd } from '../turn.ts'
import { publishResult, type Scene } from './scene.ts'
import type { FunctionCall } from '../step.ts'
import { aborted } from './wait.ts'

/** How long after a lost answer the turn fails, in a profile in which it fails. */
const LOST_ANSWER_MS = 50

/** Calls functions of the client, all at once, and waits for every answer. */
export async function call(scene: Scene, calls: readonly FunctionCall[]): Promise<void> {
  const { world, session, run, turn } = scene
  const needs = calls.map(({ name, arguments: given }) => ({
    type: 'function_call' as const,
    name,
    arguments: given,
    deadlineMs: deadlineOf(session, name),
  }))
  const raised = requireActions(world, session, turn, needs)
  for (const { action } of raised) {
    publish(world, session, turn.id, 'agent.tool_call', {
      stated: { toolName: action.name, args: action.arguments },
      open: { call_id: action.callId },
    })
    publish(world, session, turn.id, 'tool.required', {
      stated: { name: action.name, arguments: action.arguments },
      open: { call_id: action.callId, expires_at: action.expiresAt },
    })
  }
  const outputs = await Promise.all(
    raised.map(async (one) => outputOf(scene, one, await settled(scene, one))),
  )
  run.last = outputs.join('\n')
}

/** The outcome of an action, unless the turn ends first. */
export function settled({ run }: Scene, raised: Raised): Promise<Resolution> {
  return Promise.race([raised.resolved, aborted(run.controller.signal)])
}

/** The deadline that the session declares for the function; null for a function that it does not declare. */
function deadlineOf(session: Session, name: string): number | null {
  const tool = session.agent.tools?.find(
    (candidate) => candidate.type === 'function' && candidate.name === name,
  )
  return tool?.type === 'function' && tool.timeout_seconds !== undefined ? tool.timeout_seconds * 1000 : null
}

/** What the agent gets for its call. A passed deadline is an outcome, too: the turn continues. */
async function outputOf(scene: Scene, { action }: Raised, resolution: Resolution): Promise<string> {
  if (resolution.kind === 'lost') return loseTurn(scene)
  const answered = resolution.kind === 'output' || resolution.kind === 'error'
  const output = answered ? resolution.text : 'The call was not answered in time.'
  publishResult(scene, {
    name: action.name,
    callId: action.callId,
    output,
    failed: resolution.kind !== 'output',
  })
  return output
}

/**
 * The turn has lost an answer: it fails by itself, or stays until the end of its workspace,
 * depending on the profile.
 */
async function loseTurn({ world, run }: Scene): Promise<never> {
  const { signal } = run.controller
  if (world.details.lostAnswer === 'hangs') await aborted(signal)
  await world.clock.wait(LOST_ANSWER_MS, signal)
  throw new TurnEnd('failed', {
    code: 'answer_not_delivered',
    message: 'the answer to a call did not arrive',
  })
}
