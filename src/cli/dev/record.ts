import type { CallResult } from '../../core/call.ts'
import type { Channel } from '../../core/fact.ts'
import type { CallbackOutcome, ToolRunReport } from '../../core/observer.ts'

/** The records that `dev` and `listen` print, one line each. Times in milliseconds, `at` on our wall clock. */
export type DevRecord = FactSeen | CallbackDone | ToolAnswered | RunFailed

interface OfFact {
  at: number
  type: string
  /** Of the fact. */
  id: string
  /** The session's title, or its id where it has none. */
  session: string
}

export interface FactSeen extends OfFact {
  kind: 'fact'
  /** The channel that reported it first. */
  channel: Channel | null
  /** From the event to the commit; null if the service does not report the time. */
  ms: number | null
}

export interface CallbackDone extends OfFact {
  kind: 'callback'
  /** null when no answer came: `error` has the reason. */
  status: number | null
  error: string | null
  ms: number
  attempt: number
  outcome: CallbackOutcome
  /** Until the next attempt, if there is one; milliseconds. */
  wait: number | null
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

/** A run of a tool without an output. */
export interface RunFailed {
  kind: 'run'
  at: number
  session: string
  report: ToolRunReport
}
