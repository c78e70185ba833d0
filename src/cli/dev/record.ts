import type { CallResult } from '../../core/call.ts'
import type { Channel } from '../../core/fact.ts'
import type { CallbackOutcome } from '../../core/observer.ts'

/** The records that `dev` prints, one line each. Times in milliseconds, `at` on our wall clock. */
export type DevRecord = FactSeen | CallbackDone | ToolAnswered

export interface FactSeen {
  kind: 'fact'
  at: number
  type: string
  id: string
  /** The session's title, or its id where it has none. */
  session: string
  /** The channel that reported it first. */
  channel: Channel | null
  /** From the event to the commit; null if the service does not report the time. */
  ms: number | null
}

export interface CallbackDone {
  kind: 'callback'
  at: number
  handler: string
  type: string
  /** Of the fact. */
  id: string
  session: string
  /** null when no answer came: `error` has the reason. */
  status: number | null
  error: string | null
  ms: number
  attempt: number
  outcome: CallbackOutcome
}

export interface ToolAnswered {
  kind: 'tool'
  at: number
  name: string
  session: string
  /** `answered`, or the other outcome. */
  outcome: string
  /** The kind of answer for the model. */
  answer: CallResult | null
  /** From the call to the acceptance of the answer. */
  ms: number
}
