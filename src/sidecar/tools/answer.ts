import type { Call, CallResult } from '../../core/call.ts'
import { stageOf, transition, type CallEvent } from '../../core/call-machine.ts'
import { backoff } from '../../std/backoff.ts'
import { messageOf } from '../../std/errors.ts'
import { ServiceError } from '../../core/errors.ts'
import { namesOf, type AnswerPolicy, type Progress, type ToolPorts } from './context.ts'
import { mayHaveActed, RETRY, sendFollowUp } from './follow-up.ts'
import { closeGone, endCall, postingOf, readAgain, SUPERSEDED, write } from './ledger.ts'

/**
 * After an accepted answer, a read of the session may still show the action. The wait before the first check,
 * milliseconds.
 */
const CONFIRM = 3000
/** The longest wait between two later checks, milliseconds. */
const CONFIRM_MAX = 60_000
/** Checks before a call that stays listed is given up: about five minutes. */
const LOOKS = 8
/**
 * If the token lacks a scope, or the route is not known, that seldom changes soon. The wait before the next post,
 * milliseconds.
 */
const FORBIDDEN = 60_000
/**
 * An accepted post is stored with the next commit, at most this much later, milliseconds. If a crash loses it, the next
 * start finds the call as finished, and reads the session before it posts.
 */
const POSTED = 20

/**
 * Posts a stored result. After a post without a reply, it posts again only after a read shows that the service still waits.
 */
export async function answerCall(
  ports: ToolPorts,
  policy: AnswerPolicy,
  call: Call,
  restarted: boolean,
): Promise<Progress> {
  const stage = stageOf(call)
  if (stage === 'undelivered' || stage === 'resent') return await sendFollowUp(ports, policy, call, restarted)
  const { result } = call
  if (result === null) return SUPERSEDED
  if (stage === 'accepted') return await confirm(ports, call, restarted)
  // A crash may have come between a post and its reply.
  if (stage === 'unconfirmed' || stage === 'refused_unconfirmed' || restarted) {
    const state = await ports.isRequired(call)
    if (state !== 'required') return await closeGone(ports, call, state, restarted)
  }
  let word: string | null
  try {
    word = await post(ports, call, result)
  } catch (error) {
    // Another process owns the session now, and posts the result.
    if (error instanceof ServiceError && error.code === 'superseded') return SUPERSEDED
    // Nothing is written: the next start reads the session before it posts the result again.
    if (error instanceof ServiceError && error.code === 'stopped') throw error
    try {
      if (!(error instanceof ServiceError)) throw error
      // A post of the process that crashed may still be under way.
      return await failed(ports, policy, call, { error, uncertain: error.uncertain || restarted })
    } finally {
      await ports.hint([readAgain(ports, call)])
    }
  }
  return await accepted(ports, policy, call, word)
}

/**
 * The service accepted the answer, so its list of actions shows whether the call is over. The answer is not posted
 * again: with the idempotency key that has no effect, and without one the answer may be accepted twice.
 */
async function confirm(ports: ToolPorts, call: Call, restarted: boolean): Promise<Progress> {
  const { log } = ports
  const state = await ports.isRequired(call)
  if (state !== 'required') return await closeGone(ports, call, state, restarted)
  const details = { ...namesOf(ports, call), outcome: call.outcome }
  if (call.posts >= LOOKS) {
    const error = `the service accepted the answer ("${call.outcome}") and still lists the call`
    log.error(details, `tools: given up: ${error}`)
    return await endCall(ports, call, { type: 'failed', outcome: 'unresolved', error })
  }
  if (call.posts === 0) log.warn(details, 'tools: the service accepted an answer and still lists its call')
  const wait = Math.min(CONFIRM * 2 ** (call.posts + 1), CONFIRM_MAX)
  return await write(ports, call, { type: 'still_listed' }, { wait })
}

async function post(ports: ToolPorts, call: Call, result: CallResult): Promise<string | null> {
  const span = await ports.answerSpan(call)
  const { sessionId, callId } = call
  try {
    const posting = { ...postingOf(ports, call, keyOf(call, result)), traceparent: span.traceparent }
    const word = await span.run(() => ports.service.answer(sessionId, callId, bodyOf(result), posting))
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

/** If the service refuses an output, the fixed error is posted: another answer, under an idempotency key of its own. */
function keyOf(call: Call, result: CallResult): string {
  return call.outcome === 'refused' && result.kind === 'error' ? `${call.callId}.error` : call.callId
}

async function accepted(
  ports: ToolPorts,
  policy: AnswerPolicy,
  call: Call,
  word: string | null,
): Promise<Progress> {
  const hints = [readAgain(ports, call)]
  if (call.outcome === 'refused')
    return await endCall(ports, call, { type: 'failed', outcome: 'refused' }, hints)
  if (word === 'not_delivered') {
    const event = { type: 'post_undelivered' } as const
    const undelivered = transition(call, event)
    const noted = await write(ports, call, event, { hints })
    if (undelivered === null || noted.kind !== 'due') return noted
    return await sendFollowUp(ports, policy, undelivered, false)
  }
  // If the service answers `refused`, `accepted` is stored: `refused` in the ledger means that it did not accept an
  // output.
  const outcome = word === null || word === 'refused' ? 'accepted' : word
  // The interface names no other word, so the next read of the actions decides. Usually the frame that follows the
  // answer requests that read.
  return await write(
    ports,
    call,
    { type: 'post_accepted', outcome },
    { wait: CONFIRM, hints, patience: POSTED },
  )
}

async function failed(
  ports: ToolPorts,
  policy: AnswerPolicy,
  call: Call,
  { error, uncertain }: { error: ServiceError; uncertain: boolean },
): Promise<Progress> {
  const { random, log } = ports
  const details = {
    ...namesOf(ports, call),
    code: error.code,
    status: error.status,
    requestId: error.requestId,
  }
  if (error.code === 'route_unknown' || error.status === 403) {
    // While nothing can be posted, nothing else detects that the call is over.
    const state = await ports.isRequired(call)
    if (state !== 'required') return await closeGone(ports, call, state, uncertain)
    log.error(details, `tools: the answer cannot be posted: ${error.message}`)
    return await write(ports, call, unposted(error, uncertain), { wait: FORBIDDEN })
  }
  if (error.unauthorized) return await write(ports, call, unposted(error, uncertain), { wait: RETRY.base })
  if (error.status >= 400 && error.status < 500 && !error.transient) {
    const state = await ports.isRequired(call)
    if (state !== 'required') return await closeGone(ports, call, state, uncertain)
    log.warn(details, `tools: the service refused the answer: ${error.message}`)
    if (call.result?.kind === 'error')
      return await endCall(ports, call, { type: 'failed', outcome: 'refused', error: error.message })
    return await write(ports, call, { type: 'post_refused', text: policy.error, error: error.message })
  }
  log.warn(details, `tools: no reply to an answer: ${error.message}`)
  const wait = backoff(RETRY, call.posts + 1, random, error.retryAfter ?? 0)
  return await write(ports, call, unposted(error, uncertain || mayHaveActed(error)), { wait })
}

/** `sent`: the service may have accepted the answer, or may still accept it. */
function unposted({ message }: ServiceError, sent: boolean): CallEvent {
  return sent
    ? { type: 'post_unanswered', error: message }
    : { type: 'post_put_off', error: message, counted: true }
}
