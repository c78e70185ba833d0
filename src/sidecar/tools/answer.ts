import type { Call, CallResult } from '../../core/call.ts'
import { backoff } from '../../std/backoff.ts'
import { messageOf } from '../../std/errors.ts'
import { ServiceError } from '../../core/errors.ts'
import { isRequired, type AnswerPolicy, type ToolPorts } from './context.ts'
import { closeGone, endCall, putOff } from './ending.ts'
import { sendFreshTurn } from './fresh-turn.ts'
import { notePost, replaceResult } from './ledger.ts'
import { mayHaveActed, RETRY } from './posting.ts'
import { attributesOf, namesOf, traceOf } from './trace.ts'

/** After an answer that was taken, how long the session's next reading has to say that the action is gone, milliseconds. */
const CONFIRM = 3000
/** And between later looks, at most. */
const CONFIRM_MAX = 60_000
/** Looks before a call that stays listed is given up: about five minutes. */
const LOOKS = 8
/** A scope that is missing is missing for long: the answer waits, milliseconds. */
const FORBIDDEN = 60_000

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
  if (call.outcome === 'not_delivered') return await sendFreshTurn(ports, policy, call, restarted)
  const { result } = call
  if (result === null) return null
  if (call.outcome !== null && call.outcome !== 'refused') return await confirm(ports, call, restarted)
  // A crash may have come between a posting and its reply.
  if (call.unsure || restarted) {
    const state = await isRequired(ports, call)
    if (state !== 'required') return await closeGone(ports, call, state, restarted)
  }
  try {
    const word = await post(ports, call, result)
    return await accepted(ports, policy, call, word)
  } catch (error) {
    return await failed(ports, policy, call, error, restarted)
  } finally {
    await ports.hint([
      { sessionId: call.sessionId, channel: 'poll', at: ports.clock.now(), scope: 'session', delay: 300 },
    ])
  }
}

/**
 * The service took the answer: what it still lists decides. The answer is not posted again: under the same key that does
 * nothing, and without one it may be taken twice.
 */
async function confirm(ports: ToolPorts, call: Call, restarted: boolean): Promise<number | null> {
  const { clock, log } = ports
  const state = await isRequired(ports, call)
  if (state !== 'required') return await closeGone(ports, call, state, restarted)
  const details = { ...namesOf(ports, call), outcome: call.outcome }
  if (call.posts >= LOOKS) {
    const error = `the service took the answer ("${call.outcome}") and still lists the call`
    log.error(details, `tools: given up: ${error}`)
    return await endCall(ports, call, 'failed', 'unresolved', error)
  }
  if (call.posts === 0) log.warn(details, 'tools: the service took an answer and still lists its call')
  const dueAt = clock.steady() + Math.min(CONFIRM * 2 ** (call.posts + 1), CONFIRM_MAX)
  return (await ports.step(notePost(call, { posts: call.posts + 1, unsure: false, dueAt }))) ? dueAt : null
}

async function post(ports: ToolPorts, call: Call, result: CallResult): Promise<string | null> {
  const session = await ports.summaryOf(call.sessionId)
  const source = session === null ? ports.traceOf(call.sessionId) : traceOf({ ...call, session })
  const span = ports.tracer.start('answer', source, () => attributesOf(call))
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
  if (call.outcome === 'refused') return await endCall(ports, call, 'failed', 'refused')
  if (word === 'not_delivered') {
    const step = notePost(call, { posts: 0, unsure: false, dueAt: clock.steady() })
    const noted = { ...call, ...step.set, outcome: 'not_delivered' }
    if (!(await ports.step({ ...step, set: { ...step.set, outcome: 'not_delivered' } }))) return null
    return await sendFreshTurn(ports, policy, noted, false)
  }
  // Other words are not shown: the next reading of the actions decides. Usually the frame that follows asks for it.
  const dueAt = clock.steady() + CONFIRM
  const step = notePost(call, { posts: 0, unsure: false, dueAt })
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
    // For as long as nothing can be posted, nothing else notices that the call is over.
    const state = await isRequired(ports, call)
    if (state !== 'required') return await closeGone(ports, call, state, error.uncertain || restarted)
    log.error(details, `tools: the answer cannot be posted: ${error.message}`)
    return await putOff(ports, call, FORBIDDEN, { unsure: error.uncertain, error: error.message })
  }
  if (error.unauthorized)
    return await putOff(ports, call, RETRY.base, { unsure: error.uncertain, error: error.message })
  if (error.status >= 400 && error.status < 500 && !error.transient) {
    const state = await isRequired(ports, call)
    if (state !== 'required') return await closeGone(ports, call, state, error.uncertain || restarted)
    log.warn(details, `tools: the service refused the answer: ${error.message}`)
    if (call.result?.kind === 'error') return await endCall(ports, call, 'failed', 'refused', error.message)
    const steady = clock.steady()
    return (await ports.step(replaceResult(call, policy.error, error.message, steady))) ? steady : null
  }
  log.warn(details, `tools: no reply to an answer: ${error.message}`)
  const ms = backoff(RETRY, call.posts + 1, random, error.retryAfter ?? 0)
  return await putOff(ports, call, ms, { unsure: mayHaveActed(error), error: error.message })
}
