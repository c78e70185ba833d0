import { NetworkFault, messageOf } from '../std/errors.ts'
import type { NetworkFaultKind } from '../std/errors.ts'

/**
 * The stage of an exchange: no byte of the request was sent, some were, or at least one byte of the
 * answer came.
 */
export type Stage = 'connecting' | 'sent' | 'answering'

/** The kind of a failure at each stage, if its code is not more specific. */
const AT_STAGE: Readonly<Record<Stage, NetworkFaultKind>> = {
  connecting: 'unreachable',
  sent: 'reset',
  answering: 'unreadable',
}

/** Codes that mean the same at every stage. */
const BY_CODE = new Map<string, NetworkFaultKind>([
  ['UND_ERR_ABORTED', 'aborted'],
  ['UND_ERR_DESTROYED', 'aborted'],
  ['UND_ERR_CLOSED', 'aborted'],
  ['ERR_INVALID_URL', 'other'],
  ['UND_ERR_INVALID_ARG', 'other'],
  ['UND_ERR_NOT_SUPPORTED', 'other'],
])
/**
 * These come from an answer that was not recognised as HTTP, so undici did not report its begin.
 */
const UNREADABLE = new Set(['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'])

/** Translates an error of undici or the operating system at `stage`. */
export function networkFault(error: unknown, stage: Stage): NetworkFault {
  if (error instanceof NetworkFault) return error
  const code = codeOf(error)
  const kind = BY_CODE.get(code) ?? (isUnreadable(error, code) ? 'unreadable' : kindAt(stage, code))
  // An AggregateError (every address of a name was tried) has a code and no message of its own.
  const message = messageOf(error) || code || 'the exchange failed'
  return new NetworkFault(kind, kind === 'unreadable' ? unreadable(message) : message, error)
}

/** An established connection whose peer stops acknowledging ends with ETIMEDOUT. */
function kindAt(stage: Stage, code: string): NetworkFaultKind {
  return stage !== 'connecting' && code === 'ETIMEDOUT' ? 'timeout' : AT_STAGE[stage]
}

/** The parser does not always name the broken rule. */
function isUnreadable(error: unknown, code: string): boolean {
  return UNREADABLE.has(code) || (error instanceof Error && error.name === 'HTTPParserError')
}

/** undici's messages describe its own action, not the data of the peer. */
function unreadable(message: string): string {
  const reason = REASONS.get(message) ?? message
  return `the answer cannot be read: ${reason}`
}

const REASONS = new Map([
  ['Headers Overflow Error', 'its headers are too long'],
  [
    'Response body length does not match content-length header',
    'its body and its content-length do not match',
  ],
  ['other side closed', 'the connection closed before its end'],
  ['closed', 'the connection closed before its end'],
  ['read ECONNRESET', 'the connection was reset before its end'],
  ['bad response', '100 Continue, which the request did not ask for'],
  ['bad upgrade', '101 Switching Protocols, which the request did not ask for'],
])

function codeOf(error: unknown): string {
  if (typeof error !== 'object' || error === null || !('code' in error)) return ''
  return typeof error.code === 'string' ? error.code : ''
}
