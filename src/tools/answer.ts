import type { Call, CallResult } from '../core/call.ts'
import { backoff } from '../core/backoff.ts'
import { messageOf, ServiceError } from '../core/errors.ts'
import { TOOL_ERROR, type ToolSpec } from '../core/tool.ts'
import { isRequired, type ToolPorts } from './context.ts'
import { close, notePost, replaceResult } from './ledger.ts'
import { attributesOf, namesOf, traceOf } from './trace.ts'

const RETRY = { base: 250, max: 60_000 }
/** After a posting whose word we do not know, how long the session's next reading has to say the action is gone, milliseconds. */
const CONFIRM = 3000
/** A scope that is missing is missing for long: the answer waits, milliseconds. */
const FORBIDDEN = 60_000
/** Tries to open a fresh turn after `not_delivered`. */
const RESENDS = 10

/** What a result's tool has to say of its posting. */
export type AnswerPolicy = Pick<ToolSpec, 'error' | 'onNotDelivered'>

/** A tool that is not configured any more: what it did is posted all the same. */
export const REMOVED: AnswerPolicy = { error: TOOL_ERROR, onNotDelivered: 'resend' }

/**
 * Posts a stored result, and nothing else; what was posted without a reply is posted again only after the service said
 * that it still waits. @returns when there is more to do, steady milliseconds; null when the call is closed.
 */
export async function answerCall(
  ports: ToolPorts,
  policy: AnswerPolicy,
  call: Call,
  restarted: boolean,
): Promise<number | null> {
  const { clock } = ports
  if (call.outcome === 'not_delivered') return await resend(ports, policy, call)
  const { result } = call
  if (result === null) return null
  const posted = call.outcome !== null && call.outcome !== 'refused'
  // A crash may have come between a posting and its reply.
  if (posted || call.unsure || restarted) {
    const state = await isRequired(ports, call)
    if (state !== 'required') return await closeGone(ports, call, state, restarted)
    if (posted)
      ports.log.warn(
        { ...namesOf(ports, call), outcome: call.outcome },
        'tools: still required after an answer; posting it again',
      )
  }
  try {
    const word = await post(ports, call, result)
    return await accepted(ports, policy, call, word)
  } catch (error) {
    return await failed(ports, policy, call, error, restarted)
  } finally {
    await ports.hint([
      { sessionId: call.sessionId, channel: 'poll', at: clock.now(), scope: 'session', delay: 300 },
    ])
  }
}

async function post(ports: ToolPorts, call: Call, result: CallResult): Promise<string | null> {
  const session = await ports.briefOf(call.sessionId)
  const source = session === null ? ports.traceOf(call.sessionId) : traceOf({ ...call, session })
  const span = ports.tracer.start('answer', source, attributesOf(call))
  const { sessionId, callId } = call
  try {
    const word = await span.run(() =>
      ports.service.answer(sessionId, callId, bodyOf(result), keyOf(call, result), span.traceparent),
    )
    span.end(null)
    return word
  } catch (error) {
    span.end(messageOf(error))
    throw error
  }
}

function bodyOf(result: CallResult) {
  return result.kind === 'output' ? { output: result.text } : { error: result.text }
}

/** One key per effect: the error that follows a refused output is another answer. */
function keyOf(call: Call, result: CallResult): string {
  return call.outcome === 'refused' && result.kind === 'error' ? `${call.callId}.error` : call.callId
}

async function accepted(
  ports: ToolPorts,
  policy: AnswerPolicy,
  call: Call,
  word: string | null,
): Promise<number | null> {
  const { clock } = ports
  if (call.outcome === 'refused') return await end(ports, call, 'failed', 'refused')
  if (word === 'not_delivered') {
    const step = notePost(call, { posts: call.posts + 1, unsure: false, dueAt: clock.steady() })
    const noted = { ...call, ...step.set, outcome: 'not_delivered' }
    if (!(await ports.step({ ...step, set: { ...step.set, outcome: 'not_delivered' } }))) return null
    return await resend(ports, policy, noted)
  }
  // Other words are not shown: the next reading of the actions decides. Usually the frame that follows asks for it.
  const dueAt = clock.steady() + CONFIRM
  const step = notePost(call, { posts: call.posts + 1, unsure: false, dueAt })
  return (await ports.step({ ...step, set: { ...step.set, outcome: word ?? 'accepted' } })) ? dueAt : null
}

async function failed(
  ports: ToolPorts,
  policy: AnswerPolicy,
  call: Call,
  error: unknown,
  restarted: boolean,
): Promise<number | null> {
  const { clock, random, log } = ports
  if (!(error instanceof ServiceError)) throw error
  const details = {
    ...namesOf(ports, call),
    code: error.code,
    status: error.status,
    requestId: error.requestId,
  }
  if (error.code === 'route_unknown' || error.status === 403) {
    log.error(details, `tools: the answer cannot be posted: ${error.message}`)
    return await wait(ports, call, FORBIDDEN, error.uncertain, error.message)
  }
  if (error.unauthorized) return await wait(ports, call, RETRY.base, error.uncertain, error.message)
  if (error.status >= 400 && error.status < 500 && !error.transient) {
    const state = await isRequired(ports, call)
    if (state !== 'required') return await closeGone(ports, call, state, error.uncertain || restarted)
    log.warn(details, `tools: the service refused the answer: ${error.message}`)
    if (call.result?.kind === 'error') return await end(ports, call, 'failed', 'refused', error.message)
    const steady = clock.steady()
    return (await ports.step(replaceResult(call, policy.error, error.message, steady))) ? steady : null
  }
  // Refused before it was looked at, or no reply: then it may have been taken.
  const unsure = error.uncertain || !NOT_ACTED_ON.has(error.code)
  log.warn(details, `tools: no reply to an answer: ${error.message}`)
  return await wait(
    ports,
    call,
    backoff(RETRY, call.posts + 1, random, error.retryAfter ?? 0),
    unsure,
    error.message,
  )
}

/** The service had no look at the request. */
const NOT_ACTED_ON = new Set([
  'rate_limit_exceeded',
  'directory_unavailable',
  'unreachable',
  'overloaded',
  'stopped',
])

async function wait(
  ports: ToolPorts,
  call: Call,
  ms: number,
  unsure: boolean,
  error: string,
): Promise<number | null> {
  const dueAt = ports.clock.steady() + ms
  const set = { posts: call.posts + 1, unsure: call.unsure || unsure, dueAt, error }
  return (await ports.step(notePost(call, set))) ? dueAt : null
}

/** The service does not wait for this call any more: what that means depends on what we did. */
export async function closeGone(
  ports: ToolPorts,
  call: Call,
  why: 'resolved' | 'deleted',
  mayBePosted: boolean,
): Promise<null> {
  // What the service took before its session was deleted is answered.
  const taken = call.state === 'finished' && call.outcome !== null && !OWED.has(call.outcome)
  if (why === 'deleted' && !taken) return await end(ports, call, 'failed', 'cancelled')
  // It is gone because it was not delivered: what is still owed is the fresh turn.
  if (call.outcome === 'not_delivered') return null
  if (call.outcome === 'refused') return await end(ports, call, 'failed', 'refused')
  if (call.state === 'finished' && call.outcome !== null)
    return await end(ports, call, 'answered', call.outcome)
  if (call.state === 'finished' && (call.unsure || call.posts > 0 || mayBePosted))
    return await end(ports, call, 'answered', 'unknown')
  return await end(ports, call, 'failed', 'expired')
}

/** Outcomes of an answer after which another is owed. */
const OWED: ReadonlySet<string> = new Set(['not_delivered', 'refused'])

/** The sandbox did not hold the call: waiting never helps (interface.md, Answering required actions). */
async function resend(ports: ToolPorts, policy: AnswerPolicy, call: Call): Promise<number | null> {
  const { random, log } = ports
  if (policy.onNotDelivered === 'report') return await end(ports, call, 'not_delivered', 'not_delivered')
  try {
    await ports.service.sendMessage(call.sessionId, resendText(call), `${call.callId}.resend`)
    log.warn(namesOf(ports, call), 'tools: an answer was not delivered; it was sent as a fresh turn')
    return await end(ports, call, 'not_delivered', 'not_delivered')
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    if (error.code === 'route_unknown' || error.notFound || call.posts > RESENDS || isFinalRefusal(error)) {
      log.error(
        { ...namesOf(ports, call), code: error.code },
        `tools: an answer was not delivered, nor a fresh turn: ${messageOf(error)}`,
      )
      return await end(ports, call, 'not_delivered', 'not_delivered', messageOf(error))
    }
    const ms = backoff(RETRY, call.posts, random, Math.max(RETRY.base, error.retryAfter ?? 0))
    return await wait(ports, call, ms, false, error.message)
  }
}

function isFinalRefusal(error: ServiceError): boolean {
  return (
    error.status >= 400 &&
    error.status < 500 &&
    !error.transient &&
    !error.unauthorized &&
    error.code !== 'queue_full'
  )
}

function resendText(call: Call): string {
  const text = call.result?.text ?? ''
  return `The result of the function call ${call.name} (${call.callId}) did not reach you. It is:\n${text}`
}

async function end(
  ports: ToolPorts,
  call: Call,
  state: 'answered' | 'not_delivered' | 'failed',
  outcome: string,
  error: string | null = call.error,
): Promise<null> {
  const { clock, observer } = ports
  const session = await ports.briefOf(call.sessionId)
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
