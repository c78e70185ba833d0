import type { Call } from '../../core/call.ts'
import { forFunction } from '../../core/tool.ts'
import { REMOVED, type Progress, type Tool, type ToolPorts } from './context.ts'
import { closeGone, write } from './ledger.ts'
import { FAR, giveUp, timeLeft } from './run.ts'
import { fits } from './targets.ts'

/** The late answer of the app to a call that its tool deferred with 202 (src/sidecar/README.md, Function tools). */
export type LateAnswer = { output: string } | { error: true }

export type AnswerOutcome = 'accepted' | 'not_found' | 'conflict' | 'too_long'

/** Fixes the result of a call that waits for the app; it is then posted like any other. */
export async function answerLater(
  ports: ToolPorts,
  tools: ReadonlyMap<string, Tool>,
  callId: string,
  answer: LateAnswer,
): Promise<AnswerOutcome> {
  const { store, clock } = ports
  const call = await store.calls.get(callId)
  if (call === null) return 'not_found'
  // A running call is answered too: the 202 that defers it may still be on its way to us.
  if (call.state !== 'running') return 'conflict'
  if ('output' in answer && !fits(answer.output)) return 'too_long'
  const result =
    'output' in answer
      ? ({ kind: 'output', text: answer.output } as const)
      : ({ kind: 'error', text: (forFunction(tools, call.name)?.spec ?? REMOVED).error } as const)
  const { kind } = await write(ports, call, { type: 'app_answered', result, at: clock.now() })
  return kind === 'due' ? 'accepted' : 'conflict'
}

/** Nothing to do until the app answers, unless the deadline has passed or the service no longer waits. */
export async function awaitApp(
  ports: ToolPorts,
  tool: Tool,
  call: Call,
  restarted: boolean,
): Promise<Progress> {
  const left = timeLeft(ports, call)
  if (left <= 0) return await giveUp(ports, tool.spec, call, 'the app did not answer before the deadline')
  const state = await ports.isRequired(call)
  if (state !== 'required') return await closeGone(ports, call, state, restarted)
  return await write(ports, call, { type: 'app_awaited' }, { wait: Math.min(left, FAR) })
}
