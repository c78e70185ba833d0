import { messageOf } from '../std/errors.ts'

const MEANING = {
  full: 'the store cannot be written; is the disk full?',
  busy: 'another program locks or overloads the store; stop it, or wait until it is done',
  unreachable: 'the database of the store cannot be reached',
  damaged: 'the store is damaged',
  closed: 'the store is closed',
  fenced: 'another process has taken the store over; nothing more of this one is written',
  lost: 'the files of the store were deleted or replaced while it was in use; nothing more is written',
}

/**
 * The store could not write or read. Nothing was written, with one exception: a database server may have stored a
 * frame's commit although its answer was lost.
 */
export class StoreError extends Error {
  readonly kind: keyof typeof MEANING

  constructor(kind: keyof typeof MEANING, cause?: unknown) {
    super(cause === undefined ? MEANING[kind] : `${MEANING[kind]} (${messageOf(cause)})`, { cause })
    this.name = 'StoreError'
    this.kind = kind
  }
}
