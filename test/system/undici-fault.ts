import { NetworkFault, messageOf, type NetworkFaultKind } from '../../src/std/errors.ts'
import { networkFault, type Stage } from '../../src/system/fault.ts'

/** Codes that mean the same at every stage. */
const BY_CODE = new Map<string, NetworkFaultKind>([
  ['UND_ERR_ABORTED', 'aborted'],
  ['UND_ERR_DESTROYED', 'aborted'],
  ['UND_ERR_CLOSED', 'aborted'],
  ['UND_ERR_INVALID_ARG', 'other'],
  ['UND_ERR_NOT_SUPPORTED', 'other'],
])
/** These come from an answer that was not recognised as HTTP, so undici did not report its begin. */
const UNREADABLE = new Set(['UND_ERR_HEADERS_OVERFLOW', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'])

/** An error of undici as our fault. */
export function undiciFault(error: unknown, stage: Stage): NetworkFault {
  if (!(error instanceof Error) || error instanceof NetworkFault) return networkFault(error, stage)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const kind = BY_CODE.get(code)
  if (kind !== undefined) return new NetworkFault(kind, messageOf(error), error)
  const isUnreadable = UNREADABLE.has(code) || error.name === 'HTTPParserError'
  return networkFault(error, isUnreadable ? 'answering' : stage)
}

/** undici has an array for a repeated header. */
export function singleValued(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(', ') : (value ?? ''),
    ]),
  )
}
