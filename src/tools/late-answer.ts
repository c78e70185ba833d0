import type { Tool, ToolPorts } from './context.ts'
import { finish } from './ledger.ts'
import { fits } from './output.ts'

/** What the app says of a call that its tool put off with 202 (product.md, Function tools). */
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
  const call = await store.call(callId)
  if (call === null) return 'not_found'
  const tool = tools.get(call.name)
  // Its 202 may still be on the way to us.
  if (call.state !== 'running' || tool === undefined) return 'conflict'
  if ('output' in answer && !fits(answer.output)) return 'too_long'
  const result =
    'output' in answer
      ? ({ kind: 'output', text: answer.output } as const)
      : ({ kind: 'error', text: tool.spec.error } as const)
  const done = await ports.step(finish(call, result, clock.now(), null, clock.steady(), ['running']))
  return done ? 'accepted' : 'conflict'
}
