import { messageOf, OperatorError } from '../std/errors.ts'
import { StoreError } from '../core/store-error.ts'
import { listenText } from '../sidecar/config/listen.ts'
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
  // For example, the disk is full at the start. If it becomes full later, the sidecar logs that and waits.
  if (error instanceof StoreError) {
    terminal.err(`${label} ${visible(error.message)}\n`)
    return 1
  }
  if (isSystemError(error)) {
    const { reason, fix } = refusalOf(error)
    const { address: host, port } = error
    const place = host === undefined || port === undefined ? error.path : listenText({ host, port })
    const joint = /^(?:is|does|cannot) /.test(reason) ? ' ' : ': '
    const text = place === undefined || reason === error.message ? reason : place + joint + reason
    terminal.err(`${label} ${visible(text)}\n${fix === undefined ? '' : fixLine(fix)}`)
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

interface Refusal {
  reason: string
  fix?: string
}

const DENIED = {
  reason: 'permission denied',
  fix: 'use another path or a port above 1023, or run as a user who has the permission',
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  EADDRINUSE: {
    reason: 'is in use by another program',
    fix: 'stop that program, or use another port: emulate --listen, or admin.listen and webhooks.listen in the configuration',
  },
  EADDRNOTAVAIL: {
    reason: 'is not an address of this machine',
    fix: 'use 127.0.0.1, 0.0.0.0 or an address that `ip address` lists',
  },
  EACCES: DENIED,
  EPERM: DENIED,
  ENOENT: { reason: 'does not exist', fix: 'correct the path' },
  ENOSPC: { reason: 'no space left on the device', fix: 'free some space, or use another path' },
  EROFS: {
    reason: 'the file system is read-only',
    fix: 'use a path on a file system that can be written',
  },
  EMFILE: { reason: 'too many open files', fix: 'raise the limit: ulimit -n' },
}

/** inotify reports its own limits with the codes of a full disk and of too many files. */
const REFUSED_WATCHES: Readonly<Record<string, Refusal>> = {
  ENOSPC: {
    reason: 'cannot be watched: all watches of this user are in use',
    fix: 'end programs that watch files, or raise the limit: sysctl fs.inotify.max_user_watches',
  },
  EMFILE: {
    reason: 'cannot be watched: too many programs of this user watch files',
    fix: 'end some of them, or raise the limit: sysctl fs.inotify.max_user_instances',
  },
}

function refusalOf({ code, syscall, message }: SystemError): Refusal {
  const own = syscall === 'watch' ? REFUSED_WATCHES[code] : undefined
  return own ?? REFUSALS[code] ?? { reason: message }
}
