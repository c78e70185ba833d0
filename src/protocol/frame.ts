import type { Fact } from '../core/fact.ts'
import type { Hint } from '../core/hint.ts'

/** A frame of the stream from the parser of Server-Sent Events. */
export interface Frame {
  event: string | undefined
  /** The `id:` line of this frame, if it has one. */
  id: string | undefined
  data: string
}

/** The meaning of a frame (rules EVT-08 to EVT-18). */
export type Meaning =
  | { kind: 'fact'; name: string; seq: string; fact: Fact; hints: Hint[] }
  | { kind: 'transient'; type: string; sessionId: string | null; body: string }
  /** The replay stopped at its limit: it must be continued from `fromSeq`. */
  | { kind: 'stop'; fromSeq: string }
  | { kind: 'unreadable'; reason: string; seq: string | null }
