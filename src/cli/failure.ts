import { messageOf, OperatorError } from '../std/errors.ts'
import { StoreError } from '../core/store-error.ts'
import { visible, type Terminal } from './terminal.ts'

/**
 * Prints the reason for the end of a command and returns its exit code. A user's mistake or an
 * external condition is printed as a plain message, a bug with its stack.
 */
export function reportFailure(error: unknown, terminal: Pick<Terminal, 'err' | 'paintErr'>): number {
  const label = terminal.paintErr(['bold', 'red'], 'error:')
  if (error instanceof OperatorError) {
    const lines = error.reason.split('\n')
    terminal.err(lines.map((line) => `${label} ${visible(line)}\n`).join(''))
    if (lines.length > 1) terminal.err(`${lines.length} faults\n`)
    if (error.fix !== null) terminal.err(fixLine(error.fix))
    return error.exitCode
  }
  // The disk is full at the start. Later, a full disk is logged and waited for.
  if (error instanceof StoreError) {
    terminal.err(`${label} ${visible(error.message)}\n`)
    return 1
  }
  if (isSystemError(error)) {
    const fix = FIXES[error.code]
    terminal.err(`${label} ${visible(systemMessage(error))}\n${fix === undefined ? '' : fixLine(fix)}`)
    return 1
  }
  const stack = error instanceof Error ? error.stack : undefined
  terminal.err(`${label} unexpected error, please report it: ${stack ?? messageOf(error)}\n`)
  return 1
}

/** The second line of an error. */
function fixLine(fix: string): string {
  return `  fix: ${visible(fix)}\n`
}

interface SystemError extends Error {
  code: string
  syscall: string
  path?: string
  address?: string
  port?: number
}

/** A refusal of the operating system: a port in use, a full disk. */
function isSystemError(error: unknown): error is SystemError {
  return error instanceof Error && 'code' in error && 'syscall' in error && typeof error.code === 'string'
}

const REASONS: Record<string, string> = {
  EADDRINUSE: 'is in use by another program',
  EADDRNOTAVAIL: 'is not an address of this machine',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOENT: 'does not exist',
  ENOSPC: 'no space left on the device',
  EROFS: 'the file system is read-only',
  EMFILE: 'too many open files',
}

const FIXES: Record<string, string> = {
  EADDRINUSE:
    'stop that program, or use another port: --listen, or admin.listen and webhooks.listen of the configuration',
  EADDRNOTAVAIL: 'use 127.0.0.1, 0.0.0.0 or an address that `ip address` lists',
  EACCES: 'use another path, a port above 1023, or a user who may do it',
  EROFS: 'use a path on a file system that can be written',
  ENOSPC: 'free some space, or use another path',
}

function systemMessage(error: SystemError): string {
  const reason = REASONS[error.code]
  if (reason === undefined) return error.message
  const place = error.address === undefined ? error.path : `${error.address}:${error.port}`
  return place === undefined ? reason : `${place}: ${reason}`
}
