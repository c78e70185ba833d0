import type { Readable } from 'node:stream'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** The answer of an operation. */
export interface Answer {
  status: number
  /** JSON, unless `bytes` is set. */
  body?: unknown
  bytes?: Uint8Array | Readable
  /** The media type of `bytes`. */
  type?: string
  headers?: Readonly<Record<string, string>>
  /** No answer is sent: the connection is cut after the work was done. */
  lost?: boolean
}
