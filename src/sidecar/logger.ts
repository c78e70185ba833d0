import { pino, type DestinationStream, type Logger } from 'pino'
import { StoreError } from '../core/store-error.ts'
import type { Log } from '../std/ports.ts'

export interface LogSettings {
  level: string
  format: 'auto' | 'json' | 'pretty'
}

/**
 * Keys whose values never appear in the log, at the top of the details and one level below. A deeper value is replaced
 * only if it is one of `secrets`.
 */
const REDACTED = [
  'token',
  'secret',
  'secrets',
  'authorization',
  'headers.authorization',
  '*.token',
  '*.secret',
  '*.secrets',
]

/**
 * The program's log on standard error: JSON lines, or readable lines on a terminal. Values of `secrets` are replaced
 * too, in case the message of a library quotes one.
 */
export async function createLogger(
  { level, format }: LogSettings,
  secrets: () => readonly string[],
): Promise<Logger> {
  const forPeople = format === 'pretty' || (format === 'auto' && process.stderr.isTTY)
  const stream = forPeople ? await openPretty() : { write: (line: string) => void process.stderr.write(line) }
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: REDACTED, censor: '[redacted]' },
      serializers: { err: serializeError },
    },
    { write: (line) => stream.write(withhold(line, secrets())) },
  )
}

/** pino adds the message of the cause to the message; a StoreError has it already. */
function serializeError(error: Error): object {
  const shown = pino.stdSerializers.err(error)
  return error instanceof StoreError ? { ...shown, message: error.message } : shown
}

/** Loads the formatter for a terminal; a container does not need it. */
async function openPretty(): Promise<DestinationStream> {
  const { default: pretty } = await import('pino-pretty')
  return pretty({
    destination: 2,
    sync: true,
    colorize: process.stderr.isTTY && !process.env.NO_COLOR,
    ignore: 'pid,hostname',
    singleLine: true,
  })
}

/** Shorter secrets are not replaced: they may be ordinary words. */
const SHORTEST = 8

function withhold(line: string, secrets: readonly string[]): string {
  let clean = line
  for (const secret of secrets) {
    if (secret.length < SHORTEST) continue
    // A secret with a quote or a backslash is escaped in a JSON line: both forms are replaced.
    for (const text of new Set([secret, JSON.stringify(secret).slice(1, -1)]))
      if (clean.includes(text)) clean = clean.replaceAll(text, '[redacted]')
  }
  return clean
}

/** pino as the `Log` port: both take the details first, then the message. */
export function asLog(logger: Logger): Log {
  return {
    debug: (details, message) => logger.debug(details, message),
    info: (details, message) => logger.info(details, message),
    warn: (details, message) => logger.warn(details, message),
    error: (details, message) => logger.error(details, message),
    child: (bindings) => asLog(logger.child(bindings)),
  }
}
