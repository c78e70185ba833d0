import { ended } from './transport/requester.ts'

/** Aborts `other` when `signal` aborts. @returns a function that removes this link. */
export function link(signal: AbortSignal | undefined, other: AbortController): () => void {
  if (signal === undefined) return () => undefined
  const onAbort = (): void => other.abort(signal.reason)
  if (signal.aborted) onAbort()
  else signal.addEventListener('abort', onAbort, { once: true })
  return () => signal.removeEventListener('abort', onAbort)
}

/** Waits for `work` until `signal` aborts. @throws {ServiceError} when it aborts first. */
export async function raced<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let onAbort: (() => void) | undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(ended(signal))
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([work, aborted])
  } finally {
    if (onAbort !== undefined) signal.removeEventListener('abort', onAbort)
  }
}
