/**
 * The progress of an exchange before its failure.
 *
 * - `unreachable`: nothing was sent. The connection was refused, the name has no address, or TLS failed.
 * - `reset`: the request was sent at least in part, and the connection ended before a byte of an answer.
 * - `unreadable`: at least one byte of an answer came, and the answer is cut off, too long, or not HTTP/1.1.
 * - `timeout`: the answer was not complete in time.
 * - `aborted`: we ended it.
 * - `other`: it was not tried, because we cannot send it.
 */
export type NetworkFaultKind = 'unreachable' | 'reset' | 'unreadable' | 'timeout' | 'aborted' | 'other'

/** An HTTP exchange that ended without an answer that can be used. */
export class NetworkFault extends Error {
  readonly kind: NetworkFaultKind

  constructor(kind: NetworkFaultKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'NetworkFault'
    this.kind = kind
  }
}

/** A fault that an operator can fix: reported in plain words, without a stack trace. */
export class OperatorError extends Error {
  /** The exit code of the process: 1 failed, 2 unusable configuration or arguments, 3 token rejected. */
  readonly exitCode: 1 | 2 | 3
  /** The message is the reason and, where there is one, the fix. */
  readonly reason: string
  readonly fix: string | null

  constructor(reason: string, exitCode: 1 | 2 | 3 = 1, fix: string | null = null) {
    super(fix === null ? reason : `${reason}; ${fix}`)
    this.reason = reason
    this.name = 'OperatorError'
    this.exitCode = exitCode
    this.fix = fix
  }
}

/**
 * The description of a value that a user's function threw: only its class. The message may contain
 * the function's input and must not be logged; a function that needs more has its own `log`.
 */
export function thrownName(error: unknown): string {
  try {
    if (error instanceof Error && typeof error.name === 'string') return `it threw ${error.name}`
  } catch {
    // A name may be a getter that throws, too.
  }
  return 'it threw a value that is not an Error'
}

/** The code of an error of the system or of a library, such as `ENOENT`; empty if it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** The message for people of an error of ours or of a library. Never sent to the model. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
