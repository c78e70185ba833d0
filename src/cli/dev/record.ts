import type { Channel } from '../../core/fact.ts'

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
  /** From the first channel's news to the commit; null where it is not known. */
  ms: number | null
}

export interface CallbackDone {
  kind: 'callback'
  at: number
  handler: string
  type: string
  session: string
  /** null when no answer came: `error` says why. */
  status: number | null
  error: string | null
  ms: number
  attempt: number
  result: 'delivered' | 'retry' | 'dead'
}

export interface ToolAnswered {
  kind: 'tool'
  at: number
  name: string
  session: string
  /** `answered`, `failed`, `not_delivered`. */
  state: string
  /** The service's word for it. */
  outcome: string | null
  /** What the model got. */
  output: string | null
  /** From the call's coming to the answer's acceptance. */
  ms: number
}
