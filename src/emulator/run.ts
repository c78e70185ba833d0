import type { Step } from './step.ts'
import type { Turn } from './turn.ts'

/** The agent at work on one message. */
export interface Run {
  /** Aborted with a `TurnEnd` to end the turn, with any other reason to leave it unchanged. */
  readonly controller: AbortController
  /** The text that it works on. */
  readonly message: string
  /** Null until the run has started. */
  turn: Turn | null
  /** Steps that steering put before the rest. */
  readonly steered: Step[]
  /** Wakes a step that can be interrupted by steering. */
  interrupt: (() => void) | null
  /** Set by the script: the duration of the collection of this turn's artifacts. */
  collectMs: number | null
  /** `{{last}}`: the output of the last call. */
  last: string
  /** `{{calls.NAME}}`: the output of the last call of each function and tool. */
  readonly outputs: Map<string, string>
}

export function newRun(message: string): Run {
  return {
    controller: new AbortController(),
    message,
    turn: null,
    steered: [],
    interrupt: null,
    collectMs: null,
    last: '',
    outputs: new Map(),
  }
}
