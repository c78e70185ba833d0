import { randomBytes } from 'node:crypto'
import type { OutputFile } from './workspace.ts'

/** `stopped` is the status that the interface does not show; a profile gives it a word. */
type TurnStatus = 'working' | 'completed' | 'failed' | 'stopped'
type ArtifactsState = null | 'pending' | 'ready' | 'partial' | 'failed'

export interface TurnError {
  code: string
  message: string
}

export interface Turn {
  readonly id: string
  readonly sessionId: string
  status: TurnStatus
  readonly createdAt: number
  readonly startedAt: number
  completedAt: number | null
  artifacts: ArtifactsState
  skipped: { path: string; reason: string }[]
  /** The subagent that took the turn. */
  readonly subagentId: string | null
  /** The files that the turn left under `outputs/`, until they are published. */
  outputs: OutputFile[]
  error: TurnError | null
}

export function newTurn(sessionId: string, now: number, subagentId: string | null): Turn {
  return {
    id: `turn_${randomBytes(12).toString('hex')}`,
    sessionId,
    status: 'working',
    createdAt: now,
    startedAt: now,
    completedAt: null,
    artifacts: null,
    skipped: [],
    subagentId,
    outputs: [],
    error: null,
  }
}

/** Thrown inside a run to end its turn. */
export class TurnEnd extends Error {
  override readonly name = 'TurnEnd'
  readonly status: 'failed' | 'stopped'
  readonly error: TurnError | null

  constructor(status: 'failed' | 'stopped', error: TurnError | null) {
    super(error?.message ?? status)
    this.status = status
    this.error = error
  }
}
