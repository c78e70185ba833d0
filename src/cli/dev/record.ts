import type { CallResult } from '../../core/call.ts'
import type { Channel } from '../../core/fact.ts'
import type { CallbackOutcome } from '../../core/observer.ts'

/** What `dev` shows a line of. Times in milliseconds, `at` on our wall clock. */
export type DevRecord = FactSeen | CallbackDone | ToolAnswered

export interface FactSeen {
  kind: 'fact'
  at: number
  type: string
  id: string
  /** The session's title, or its id where it has none. */
  session: string
  /** Who told us first. */
  channel: Channel | null
  /** From its happening to its being durable here; null where the service does not tell. */
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
  /** null when no answer came: `error` says why. */
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
  /** `answered`, or what became of it instead. */
  outcome: string
  /** What the model got. */
  answer: CallResult | null
  /** From the call's coming to the answer's acceptance. */
  ms: number
}
