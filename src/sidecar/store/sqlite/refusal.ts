import { codeOf, messageOf, OperatorError } from '../../../std/errors.ts'

export function damaged(file: string, detail: string): OperatorError {
  return new OperatorError(
    `store: ${file} is damaged (${detail}). It was not changed. Put a backup in its place, or rename it ` +
      'to start with an empty store: what the service still shows is then delivered again, under the same ids.',
  )
}

/** Turns an error of the driver into a message for the operator who opens `file`. */
export function explainOpening(error: unknown, file: string): unknown {
  const code = codeOf(error)
  if (code.startsWith('SQLITE_CORRUPT') || code.startsWith('SQLITE_NOTADB'))
    return damaged(file, messageOf(error))
  if (code.startsWith('SQLITE_')) return new OperatorError(`store: ${file}: ${messageOf(error)} (${code})`)
  return error
}
