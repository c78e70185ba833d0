import type { Timer } from './clock.ts'

export type ActionType = 'function_call' | 'approval' | 'question'

/** How an action was resolved. */
export type Resolution =
  | { kind: 'output'; text: string }
  | { kind: 'error'; text: string }
  | { kind: 'expired' }
  | { kind: 'lost' }
  | { kind: 'approved'; approved: boolean }
  | { kind: 'answered'; text: string }
  | { kind: 'turn_over' }

/** An action that a session waits for, and later the record of its outcome. */
export interface Action {
  readonly type: ActionType
  readonly sessionId: string
  readonly turnId: string
  readonly callId: string
  /** The function, the tool to approve, or empty for a question. */
  readonly name: string
  /** The function's or tool's arguments, or the question's text. */
  readonly arguments: unknown
  readonly createdAt: number
  readonly expiresAt: number | null
  resolution: Resolution | null
  resolvedAt: number | null
  readonly deadline: Timer | null
  /** Continues the waiting run. */
  readonly resolve: (resolution: Resolution) => void
}
