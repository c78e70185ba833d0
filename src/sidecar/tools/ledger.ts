import type { Call } from '../../core/call.ts'
import { stageOf, transition, type CallEvent } from '../../core/call-machine.ts'
import { stateFactId, type Fact } from '../../core/fact.ts'
import type { Hint } from '../../core/hint.ts'
import type { Posting } from '../../core/ports.ts'
import type { SessionSummary } from '../../core/resource.ts'
import { createCircuitBreaker, type Rest } from '../../std/circuit-breaker.ts'
import { writeJson, type JsonObject } from '../../std/json.ts'
import { pause } from '../../std/pause.ts'
import { attributesOf, traceOf } from '../../core/tool.ts'
import type { Tracer, TraceSource } from '../../core/trace.ts'
import type { ActionState, Progress, Step, ToolPorts } from './context.ts'

/** Writes the events of calls: each event is stored before its effect is visible outside. */

export const SUPERSEDED: Progress = { kind: 'superseded' }

/** Writes an event after which more work is due, in `wait` milliseconds. */
export async function write(
  ports: ToolPorts,
  call: Call,
  event: CallEvent,
  { wait = 0, ...beside }: { wait?: number } & Pick<Step, 'hints' | 'patience'> = {},
): Promise<Progress> {
  const at = ports.clock.steady() + wait
  const done = await ports.step({ callId: call.callId, event, after: wait, ...beside })
  // The store accepted the step, so no other step came before it: our copy after the same event is the call as it is
  // stored.
  const stepped = done ? transition(call, event) : null
  return stepped === null ? SUPERSEDED : { kind: 'due', at, call: stepped }
}

/** How long after a post the session is read again, milliseconds. */
const READ_AFTER = 300

/** After a post, the service may no longer wait for the call, or may have deleted the session: a read shows it. */
export function readAgain({ clock }: ToolPorts, { sessionId }: Call): Hint {
  return { sessionId, channel: 'poll', at: clock.now(), scope: 'session', delay: READ_AFTER }
}

/** How a request for a call is sent: under `key`, while this process owns the session. */
export function postingOf({ store }: Pick<ToolPorts, 'store'>, { sessionId }: Call, key: string): Posting {
  return { key, maySend: () => store.shards.owns(sessionId) }
}

/** The last event of a call. */
type Ending = Extract<CallEvent, { type: 'answered' | 'not_delivered' | 'failed' }>

/** Closes a call, and reports it. */
export async function endCall(
  ports: ToolPorts,
  call: Call,
  { error = call.error, ...end }: EndWithoutTime,
  hints?: readonly Hint[],
): Promise<Progress> {
  const { clock, observer } = ports
  const session = await ports.sessions.summary(call.sessionId)
  const event: Ending = { ...end, error, at: clock.now() }
  const closed = transition(call, event)
  if (closed === null) return SUPERSEDED
  const facts = [factOf(closed, event, session)]
  const beside = hints === undefined ? { facts } : { facts, hints }
  if (!(await ports.step({ callId: call.callId, event, ...beside }))) return SUPERSEDED
  const offset = ports.service.clockOffset()
  observer.call({
    tool: call.name,
    callId: call.callId,
    sessionId: call.sessionId,
    // The service may use any word for an accepted answer; the metric counts all of them as `answered`.
    outcome: event.type === 'answered' && event.outcome !== 'unknown' ? 'answered' : (closed.outcome ?? ''),
    seconds: call.createdAt === null ? null : Math.max(0, clock.now() + offset - call.createdAt) / 1000,
    call: closed,
  })
  return { kind: 'closed' }
}

type EndWithoutTime =
  | { type: 'answered' | 'failed'; outcome: string; error?: string | null }
  | { type: 'not_delivered'; error?: string | null }

/** The service no longer waits for this call: the outcome depends on what the sidecar did. */
export async function closeGone(
  ports: ToolPorts,
  call: Call,
  why: 'resolved' | 'deleted',
  mayBePosted: boolean,
): Promise<Progress> {
  const stage = stageOf(call)
  // An answer that the service accepted before its session was deleted counts as answered.
  if (why === 'deleted' && stage !== 'accepted')
    return await endCall(ports, call, { type: 'failed', outcome: 'cancelled' })
  switch (stage) {
    // The action is gone because it was not delivered: the follow-up message is still to be sent.
    case 'undelivered':
    case 'resent':
      return SUPERSEDED
    case 'refused':
    case 'refused_unconfirmed':
      return await endCall(ports, call, { type: 'failed', outcome: 'refused' })
    case 'accepted':
      return await endCall(ports, call, { type: 'answered', outcome: call.outcome ?? 'unknown' })
    case 'unconfirmed':
      return await endCall(ports, call, { type: 'answered', outcome: 'unknown' })
    case 'finished':
      if (mayBePosted) return await endCall(ports, call, { type: 'answered', outcome: 'unknown' })
      // No post had an effect: there was none, it was refused, or its route is not known.
      return await endCall(ports, call, { type: 'failed', outcome: 'expired' })
    case 'received':
    case 'running':
    case 'deferred':
    case 'answered':
    case 'not_delivered':
    case 'failed':
      return await endCall(ports, call, { type: 'failed', outcome: 'expired' })
  }
}

/** The ports that other parts give; the others are made here. */
export type GivenPorts = Omit<ToolPorts, 'keep' | 'isRequired' | 'answerSpan'> & { tracer: Tracer }

/** A step that the store refuses opens the circuit breaker `rest`; the next step that is stored closes it. */
export interface LedgerPorts {
  ports: ToolPorts
  /** As in `ports`; `signal` ends the read. */
  isRequired: (call: Call, signal?: AbortSignal) => Promise<ActionState>
  rest: Rest
  /** Postpones a call by `wait` milliseconds. False: the store refused even that, and gets no writes for a while. */
  postpone(claim: Pick<Step, 'callId' | 'lease'>, wait: number): Promise<boolean>
}

/** `origins`: the origin of the trace of each call whose tool this process ran. */
export function ledgerPorts(
  given: GivenPorts,
  origins: Pick<ReadonlyMap<string, TraceSource>, 'get'>,
): LedgerPorts {
  const { clock } = given
  const rest = createCircuitBreaker(
    given,
    'tools: the store refuses writes; no call is accepted until it accepts them',
  )
  const step: ToolPorts['step'] = async (one) => {
    const done = await given.step(one)
    rest.end()
    return done
  }
  const keep: ToolPorts['keep'] = async (one, over) => {
    for (;;) {
      try {
        return await step(one)
      } catch (error) {
        rest.refused(error)
        if (over.aborted) throw error
        await pause(clock, rest.until - clock.steady(), over)
      }
    }
  }
  const isRequired: LedgerPorts['isRequired'] = async ({ sessionId, callId }, signal) => {
    const session = await given.sessions.read(sessionId, signal)
    if (session !== null)
      return session.actions.some((action) => action.callId === callId) ? 'required' : 'resolved'
    // Perhaps no channel has reported that the session is gone.
    await given.hint([{ sessionId, channel: 'poll', at: clock.now(), scope: 'session', delay: 0 }])
    return 'deleted'
  }
  const sessions: ToolPorts['sessions'] = {
    ...given.sessions,
    traceOf: (call) => origins.get(call.callId) ?? given.sessions.traceOf(call),
  }
  const originOf = async (call: Call): Promise<TraceSource> => {
    const known = origins.get(call.callId)
    const session = known === undefined ? await sessions.summary(call.sessionId) : null
    return session === null ? sessions.traceOf(call) : traceOf({ ...call, session })
  }
  const answerSpan: ToolPorts['answerSpan'] = async (call) =>
    given.tracer.start('answer', await originOf(call), () => attributesOf(call))
  return {
    ports: { ...given, sessions, step, keep, isRequired, answerSpan },
    isRequired,
    rest,
    async postpone(claim, wait) {
      try {
        await step({ ...claim, event: { type: 'postponed' }, after: wait })
        return true
      } catch (error) {
        rest.refused(error)
        return false
      }
    },
  }
}

const TYPES = {
  answered: 'call.answered',
  not_delivered: 'call.not_delivered',
  failed: 'call.failed',
} as const

/** The fact that a call has ended. */
function factOf(closed: Call, { type, at }: Ending, session: SessionSummary | null): Fact {
  return {
    id: stateFactId(TYPES[type], closed.callId),
    type: TYPES[type],
    sessionId: closed.sessionId,
    turnId: closed.turnId,
    at,
    family: 'state',
    seq: null,
    body: writeJson({ call: callData(closed), session: session === null ? null : { ...session } }),
    seen: {},
    subject: null,
  }
}

/** The fields of a call in a callback (src/sidecar/README.md, Callbacks). The result is for the model, and is not repeated. */
function callData(call: Call): JsonObject {
  return {
    call_id: call.callId,
    name: call.name,
    turn_id: call.turnId,
    state: call.state,
    outcome: call.outcome,
    attempts: call.attempts,
    error: call.result?.kind === 'error' || call.state !== 'answered' ? call.error : null,
    answered_with: call.result?.kind ?? null,
    created_at: call.createdAt,
    expires_at: call.expiresAt,
    received_at: call.receivedAt,
    started_at: call.startedAt,
    finished_at: call.finishedAt,
    ended_at: call.endedAt,
  }
}
