import type { Call } from '../../core/call.ts'
import type { ToolPorts } from './context.ts'
import { close, notePost } from './ledger.ts'

/** How a call ends, and how what is left to do for it is put off. */

/** The service does not wait for this call any more: what that means depends on what we did. */
export async function closeGone(
  ports: ToolPorts,
  call: Call,
  why: 'resolved' | 'deleted',
  mayBePosted: boolean,
): Promise<null> {
  // What the service took before its session was deleted is answered.
  const taken = call.state === 'finished' && call.outcome !== null && !UNANSWERED.has(call.outcome)
  if (why === 'deleted' && !taken) return await endCall(ports, call, 'failed', 'cancelled')
  // It is gone because it was not delivered: the fresh turn is still to be sent.
  if (call.outcome === 'not_delivered') return null
  if (call.outcome === 'refused') return await endCall(ports, call, 'failed', 'refused')
  if (call.state === 'finished' && call.outcome !== null)
    return await endCall(ports, call, 'answered', call.outcome)
  // A posting that was refused, or whose route is not known, did nothing.
  if (call.state === 'finished' && (call.unsure || mayBePosted))
    return await endCall(ports, call, 'answered', 'unknown')
  return await endCall(ports, call, 'failed', 'expired')
}

/** Outcomes of an answer that the agent did not get. */
const UNANSWERED: ReadonlySet<string> = new Set(['not_delivered', 'refused'])

/** Closes a call, and reports it. */
export async function endCall(
  ports: ToolPorts,
  call: Call,
  state: 'answered' | 'not_delivered' | 'failed',
  outcome: string,
  error: string | null = call.error,
): Promise<null> {
  const { clock, observer } = ports
  const session = await ports.summaryOf(call.sessionId)
  const step = close(call, state, outcome, session, clock.now(), error)
  if (await ports.step(step)) {
    const offset = ports.service.clockOffset()
    observer.call({
      tool: call.name,
      callId: call.callId,
      sessionId: call.sessionId,
      // The service's own words for an answer that it took are many.
      outcome: state === 'answered' && outcome !== 'unknown' ? 'answered' : outcome,
      seconds: call.createdAt === null ? null : Math.max(0, clock.now() + offset - call.createdAt) / 1000,
      call: { ...call, ...step.set },
    })
  }
  return null
}

/** Notes a posting, or a look, that decided nothing. @returns when to go on, steady milliseconds; null: the call has moved on. */
export async function putOff(
  ports: ToolPorts,
  call: Call,
  ms: number,
  { unsure, error, counted = true }: { unsure: boolean; error: string; counted?: boolean },
): Promise<number | null> {
  const dueAt = ports.clock.steady() + ms
  const set = { posts: call.posts + (counted ? 1 : 0), unsure: call.unsure || unsure, dueAt, error }
  return (await ports.step(notePost(call, set))) ? dueAt : null
}
