import type { EmulatorOptions } from '../../src/emulator/index.ts'
import { until, type Bench, type Fields } from '../emulator/support.ts'

type Scenario = Exclude<NonNullable<EmulatorOptions['scenario']>, string>
type Steps = NonNullable<Scenario['replies']>[number]['steps']

/** A scenario in which the agent does these steps on any message. */
export function doing(steps: Steps, more: Partial<Scenario> = {}): Scenario {
  return { name: 'test', replies: [{ steps }], ...more }
}

/** The payloads of a session's transcript entries for this event, with the profile's spelling. */
export async function payloads(bench: Bench, sessionId: string, event: string): Promise<Fields[]> {
  return (await bench.items(sessionId))
    .map((item) => item['detail'] as Fields)
    .filter((detail) => detail['event'] === event)
    .map((detail) => (bench.details.name === 'a' ? (detail['payload'] as Fields) : detail))
}

/** What the agent said, message by message. */
export async function said(bench: Bench, sessionId: string): Promise<unknown[]> {
  return (await payloads(bench, sessionId, 'agent.message')).map(({ text }) => text)
}

/** What the agent read as the outcomes of its tool calls. */
export async function outputs(bench: Bench, sessionId: string): Promise<unknown[]> {
  return (await payloads(bench, sessionId, 'agent.tool_result')).map(({ output }) => output)
}

/** The codes of the attempts that were blocked, and null for each that went ahead or that a person decided. */
export async function denials(bench: Bench, sessionId: string): Promise<unknown[]> {
  const resolved = await payloads(bench, sessionId, 'approval.resolved')
  return resolved.map(({ code }) => code ?? null)
}

/** Sends a message and waits until its turn is over. */
export async function talk(bench: Bench, sessionId: string, text = 'go on'): Promise<Fields> {
  const before = (await bench.turns(sessionId)).length
  await bench.send(sessionId, text)
  return until(async () => {
    const turn = (await bench.turns(sessionId))[before]
    return turn === undefined || turn['status'] === 'working' ? undefined : turn
  })
}
