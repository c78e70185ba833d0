import { NetworkFault, messageOf } from '../core/errors.ts'
import type { NetworkFaultKind } from '../core/errors.ts'

const KINDS = new Map<string, NetworkFaultKind>([
  ['ECONNREFUSED', 'refused'],
  ['EHOSTUNREACH', 'refused'],
  ['ENETUNREACH', 'refused'],
  ['EADDRNOTAVAIL', 'refused'],
  ['UND_ERR_CONNECT_TIMEOUT', 'refused'],
  ['ECONNRESET', 'reset'],
  ['ECONNABORTED', 'reset'],
  ['EPIPE', 'reset'],
  ['UND_ERR_SOCKET', 'reset'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'reset'],
  ['ENOTFOUND', 'dns'],
  ['EAI_AGAIN', 'dns'],
  ['EAI_FAIL', 'dns'],
  ['EAI_NODATA', 'dns'],
  ['ETIMEDOUT', 'timeout'],
  ['UND_ERR_HEADERS_TIMEOUT', 'timeout'],
  ['UND_ERR_BODY_TIMEOUT', 'timeout'],
  ['UND_ERR_HEADERS_OVERFLOW', 'garbled'],
  ['UND_ERR_ABORTED', 'aborted'],
  ['UND_ERR_DESTROYED', 'aborted'],
  ['UND_ERR_CLOSED', 'aborted'],
])

/** Says in our words what undici or the operating system threw. */
export function networkFault(error: unknown): NetworkFault {
  if (error instanceof NetworkFault) return error
  const code = codeOf(error)
  const kind = (code === null ? undefined : KINDS.get(code)) ?? (isGarbled(error) ? 'garbled' : 'other')
  // An AggregateError (every address of a name was tried) has a code and no message of its own.
  const said = messageOf(error) || (code ?? 'the exchange failed')
  return new NetworkFault(kind, said, error)
}

function codeOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}

/** The parser does not always say which of its rules was broken. */
function isGarbled(error: unknown): boolean {
  return error instanceof Error && error.name === 'HTTPParserError'
}
