import { codeOf, messageOf, NetworkFault, type NetworkFaultKind } from '../std/errors.ts'

/**
 * How far an exchange came: no byte of the request was sent; some bytes were sent; at least one byte of the answer
 * came.
 */
export type Stage = 'connecting' | 'sent' | 'answering'

/** The kind of a failure at each stage, unless its code is more specific. */
const AT_STAGE: Readonly<Record<Stage, NetworkFaultKind>> = {
  connecting: 'unreachable',
  sent: 'reset',
  answering: 'unreadable',
}

/** Translates an error of the operating system at `stage`. */
export function networkFault(error: unknown, stage: Stage): NetworkFault {
  if (error instanceof NetworkFault) return error
  const code = codeOf(error)
  // An AggregateError (every address of a name was tried) has a code but no message of its own.
  const message = messageOf(error) || code || 'the exchange failed'
  const kind = kindOf(code, stage)
  const reason = `the answer cannot be read: ${REASONS.get(message) ?? message}`
  return new NetworkFault(kind, kind === 'unreadable' ? reason : message, error)
}

/** If the peer stops acknowledging, the connection ends with ETIMEDOUT. */
function kindOf(code: string, stage: Stage): NetworkFaultKind {
  if (code === 'ERR_INVALID_URL') return 'other'
  return stage !== 'connecting' && code === 'ETIMEDOUT' ? 'timeout' : AT_STAGE[stage]
}

const REASONS = new Map([
  ['other side closed', 'the connection closed before its end'],
  ['read ECONNRESET', 'the connection was reset before its end'],
])
