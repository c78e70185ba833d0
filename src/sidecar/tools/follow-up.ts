import type { Call } from '../../core/call.ts'
import { stageOf } from '../../core/call-machine.ts'
import { backoff } from '../../std/backoff.ts'
import { isParticular, PATIENCE, ServiceError } from '../../core/errors.ts'
import type { Hint } from '../../core/hint.ts'
import { messageOf } from '../../std/errors.ts'
import { writeJson } from '../../std/json.ts'
import type { Item } from '../../core/resource.ts'
import { namesOf, type AnswerPolicy, type Progress, type ToolPorts } from './context.ts'
import { endCall, postingOf, readAgain, SUPERSEDED, write } from './ledger.ts'

/**
 * After the answer `not_delivered`, the sandbox does not have the call, and the agent continues without its result
 * (rule ACT-21). A message with the result then starts a new turn.
 *
 * Once, the replies to four posts of such a message were lost, and the service accepted the message five times: it had
 * no idempotency header. Without that header, a message whose reply was lost is searched for in the transcript. It is
 * sent once more at most, and only when it is certain that the first one did not arrive.
 */

/** Backoff between posts, of answers and of follow-up messages, milliseconds. */
export const RETRY = { base: 250, max: 60_000 }

/** Whether the service may have accepted the request: there was no reply, or one that does not exclude it. */
export function mayHaveActed({ code, status, uncertain, unsent }: ServiceError): boolean {
  const refused = status >= 400 && status < 500 && code !== 'http_408'
  return uncertain || !(unsent || refused || NOT_ACTED_ON.has(code))
}

/** Errors that mean that the service did not process the request. */
const NOT_ACTED_ON = new Set([
  'rate_limit_exceeded',
  'directory_unavailable',
  'unreachable',
  'overloaded',
  'route_unknown',
])

/** The most attempts to send the message to a service with the idempotency header. */
const TRIES = 10
/** A full queue accepted nothing, and may stay full as long as its turns take, milliseconds. */
const QUEUE_FULL = 15_000
/** Backoff between two searches, milliseconds: a queued message may not show before the turns ahead of it are over. */
const LOOK = { base: 2000, max: 300_000 }
/**
 * The number of searches after which a missing message will not arrive any more: one minute, twice the longest request.
 */
const ARRIVED_BY = 5
/** The number of searches after which the outcome is reported as unknown: about two hours, longer than any turn. */
const LOOKS = 31
const PAGE = 100
/** Pages of one search: 1,000 items should reach back to the creation of the call. */
const PAGES = 10

export async function sendFollowUp(
  ports: ToolPorts,
  policy: AnswerPolicy,
  call: Call,
  restarted: boolean,
): Promise<Progress> {
  const { service, log } = ports
  if (policy.onNotDelivered === 'report') return await endNotDelivered(ports, call)
  if (stageOf(call) === 'resent') {
    const found = await findMessage(ports, call)
    if (found === 'there') {
      log.warn(namesOf(ports, call), 'tools: an answer was not delivered; the new message has arrived')
      return await endNotDelivered(ports, call)
    }
    if (found === 'unknown' || call.posts < ARRIVED_BY) return await lookLater(ports, call)
  } else if (restarted && !service.idempotent()) {
    // The process may have crashed between the message and its reply.
    return await lookFirst(ports, call)
  }
  // Read before the request: a header that is discovered meanwhile was not sent.
  const idempotent = service.idempotent()
  try {
    const posting = postingOf(ports, call, `${call.callId}.resend`)
    await service.sendMessage(call.sessionId, textOf(call), posting)
    log.warn(namesOf(ports, call), 'tools: an answer was not delivered; it was sent as a new message')
    return await endNotDelivered(ports, call)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    // Another process owns the session now, and sends the message.
    if (error.code === 'superseded') return SUPERSEDED
    // It had no effect, so nothing is written, and the next start sends it.
    if (error.code === 'stopped' && !error.uncertain) throw error
    return await failed(ports, call, error, idempotent)
  }
}

const LOST = 'the reply to the new message was lost'

async function failed(
  ports: ToolPorts,
  call: Call,
  error: ServiceError,
  idempotent: boolean,
): Promise<Progress> {
  const { random, log } = ports
  const details = { ...namesOf(ports, call), code: error.code }
  if (mayHaveActed(error) && !idempotent) {
    if (stageOf(call) === 'resent')
      return await giveUp(ports, call, `${LOST} twice: it is not sent a third time`)
    log.warn(
      details,
      'tools: no reply to a new message, and the service has no idempotency header: before it is sent again, the transcript is searched for it',
    )
    return await lookFirst(ports, call)
  }
  const { message } = error
  if (error.code === 'queue_full') {
    const wait = Math.max(QUEUE_FULL, error.retryAfter ?? 0)
    return await write(ports, call, { type: 'post_put_off', error: message, counted: false }, { wait })
  }
  // `posts` also counts the searches: after 12 searches it is 12, so the limit is higher then. Attempts at an
  // unreachable service do not count.
  const particular = isParticular(error, call.posts)
  const looked = stageOf(call) === 'resent'
  const usedUp = particular && call.posts >= (looked ? LOOKS + TRIES : TRIES)
  if (error.code === 'route_unknown' || error.notFound || usedUp || isFinalRefusal(error)) {
    log.error(details, `tools: neither an answer nor the new message was delivered: ${message}`)
    // Perhaps nothing else reports that the session was deleted, so it is read again.
    return await endNotDelivered(ports, call, message, error.notFound ? [readAgain(ports, call)] : undefined)
  }
  const wait = backoff(RETRY, call.posts + 1, random, Math.max(RETRY.base, error.retryAfter ?? 0))
  // Attempts at an unreachable service do not count as searches either.
  const counted = particular || !looked
  return await write(ports, call, { type: 'post_put_off', error: message, counted }, { wait })
}

function isFinalRefusal(error: ServiceError): boolean {
  return error.status >= 400 && error.status < 500 && !error.transient && !error.unauthorized
}

async function lookLater(ports: ToolPorts, call: Call): Promise<Progress> {
  if (call.posts >= LOOKS)
    return await giveUp(ports, call, `${LOST}, and the transcript does not show whether it arrived`)
  const wait = Math.min(LOOK.base * 2 ** call.posts, LOOK.max)
  return await write(ports, call, { type: 'message_not_found', error: LOST }, { wait })
}

/** The message was sent, or may have been: it is searched for before it is sent again. */
async function lookFirst(ports: ToolPorts, call: Call): Promise<Progress> {
  return await write(ports, call, { type: 'message_unanswered', error: LOST }, { wait: LOOK.base })
}

async function giveUp(ports: ToolPorts, call: Call, error: string): Promise<Progress> {
  ports.log.error(namesOf(ports, call), `tools: an answer was not delivered: ${error}`)
  return await endNotDelivered(ports, call, error)
}

/** Ends the call. A lost reply is no longer reported as an error. */
async function endNotDelivered(
  ports: ToolPorts,
  call: Call,
  error = call.error === LOST ? null : call.error,
  hints?: readonly Hint[],
): Promise<Progress> {
  return await endCall(ports, call, { type: 'not_delivered', error }, hints)
}

function textOf(call: Call): string {
  return `${firstLineOf(call)}\n${call.result?.text ?? ''}`
}

/** The first line of the message. The call id makes it unique. */
function firstLineOf({ name, callId }: Call): string {
  return `The result of the function call ${name} (${callId}) did not reach you. It is:`
}

/** Searches for the message. `unknown`: it may be queued, or some items cannot be read. */
async function findMessage(ports: ToolPorts, call: Call): Promise<'there' | 'absent' | 'unknown'> {
  const session = await ports.sessions.read(call.sessionId)
  // A deleted session has no transcript and accepts no message: the next post reports that.
  if (session === null) return 'absent'
  try {
    const found = await searchItems(ports, call)
    // A message that is queued behind a turn need not be an item yet.
    const idle = session.status === 'idle' || session.status === 'failed'
    return found === 'absent' && !idle ? 'unknown' : found
  } catch (error) {
    if (!isParticular(error, PATIENCE)) throw error
    ports.log.warn(
      { ...namesOf(ports, call), code: error.code, error: messageOf(error) },
      'tools: the transcript cannot be searched for a new message',
    )
    return 'unknown'
  }
}

/** Reads from the newest item back to the creation of the call. */
async function searchItems({ service }: ToolPorts, call: Call): Promise<'there' | 'absent' | 'unknown'> {
  const wanted = JSON.stringify(firstLineOf(call)).slice(1, -1)
  let unreadable = false
  let after: string | undefined
  for (let page = 0; page < PAGES; page++) {
    const { data, hasMore, lastId } = await service.listItems(
      call.sessionId,
      after === undefined ? { limit: PAGE } : { limit: PAGE, after },
    )
    if (data.some(({ raw }) => writeJson(raw).includes(wanted))) return 'there'
    unreadable ||= data.some(isUnreadableMessage)
    const reached = data.some(({ createdAt }) => createdAt !== null && createdAt < (call.createdAt ?? 0))
    if (reached || !hasMore || lastId === null || lastId === after) return unreadable ? 'unknown' : 'absent'
    after = lastId
  }
  return 'unknown'
}

/** A user message whose text the item does not show: it may be the follow-up message. */
function isUnreadableMessage({ raw }: Item): boolean {
  return raw['role'] === 'user' && typeof raw['content'] !== 'string'
}
