import type { Call, CallState } from './call.ts'
import type { StoreCounts } from './counts.ts'
import type { DeliveryRecord, DeliveryStatus } from './delivery.ts'
import type { StoredFact } from './fact.ts'
import type { Listed } from './listed.ts'
import type { Action, Session, Turn } from './resource.ts'

/** What the admin API and the metrics ask the store. Nothing of it changes anything. */
export interface StoreReader {
  facts(query: {
    after?: string
    limit: number
    order: 'asc' | 'desc'
    type?: string
    sessionId?: string
  }): Promise<Listed<StoredFact>>
  fact(id: string): Promise<StoredFact | null>
  /** `text`: the whole id, or what the title contains, whatever the case of its letters, of the newest ten thousand. */
  sessions(query: {
    after?: string
    limit: number
    status?: string
    text?: string
  }): Promise<Listed<SessionRecord>>
  /** The place in the log behind which the frames after `seq` stand, whether or not we have that one. */
  placeOf(seq: string): Promise<number>
  /**
   * The stream's frames behind a place of the log, in order; a part of the log at a time, so that there may be none with
   * more to come. `next`: the place up to which the log was looked through.
   */
  frames(query: {
    after: number
    sessionId?: string
  }): Promise<{ frames: StoredFact[]; next: number; more: boolean }>
  session(id: string): Promise<(SessionRecord & { turns: Turn[]; actions: Action[]; calls: Call[] }) | null>
  calls(query: {
    after?: string
    limit: number
    state?: CallState
    sessionId?: string
  }): Promise<Listed<Call>>
  deliveries(query: {
    after?: string
    limit: number
    status?: DeliveryStatus
    handler?: string
    factId?: string
    sessionId?: string
    /** Of facts taken in since then: our wall clock, milliseconds. */
    since?: number
  }): Promise<Listed<DeliveryRecord>>
  delivery(id: string): Promise<DeliveryRecord | null>
  /** Turns that are not settled, the oldest first. */
  openTurns(query: { after?: string; limit: number }): Promise<Listed<OpenTurn>>
  /** Actions that are not resolved, the oldest first. */
  openActions(query: { after?: string; limit: number }): Promise<Listed<OpenAction>>
  /** Functions beside `tools` that sessions wait for, those that wait longest first; names cut after 65 characters. */
  functionsBeside(tools: readonly string[], limit: number): Promise<OpenFunction[]>
  handlers(): Promise<HandlerRecord[]>
  counts(): Promise<StoreCounts>
}

export interface OpenTurn {
  turn: Turn
  session: Session
}

export interface OpenAction {
  action: Action
  /** Our wall clock: when we first read of it. */
  openedAt: number
  session: Session
}

export interface OpenFunction {
  name: string
  /** Calls that are open. */
  calls: number
  /** When the oldest was created, milliseconds. */
  oldest: number
}

export interface SessionRecord {
  session: Session
  deletedAt: number | null
  firstSeenAt: number
  readAt: number
  atRest: boolean
}

export interface HandlerRecord {
  name: string
  number: number
  pausedAt: number | null
  pauseReason: string | null
}
