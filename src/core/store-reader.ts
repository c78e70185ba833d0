import type { Call, CallState } from './call.ts'
import type { StoreCounts } from './counts.ts'
import type { DeliveryRecord, DeliveryStatus } from './delivery.ts'
import type { StoredFact } from './fact.ts'
import type { Listed } from './listed.ts'
import type { Action, Session, Turn } from './resource.ts'

/** In place of a status: sessions that are known to be deleted, whatever status they had. */
export const DELETED = 'deleted'

/** The reads of the admin API and the metrics. None of them changes the store. */
export interface StoreReader {
  facts(query: {
    after?: string | undefined
    limit: number
    order: 'asc' | 'desc'
    type?: string | undefined
    sessionId?: string | undefined
  }): Promise<Listed<StoredFact>>
  /** `text`: the whole id, or a part of the title in any case. Only the newest ten thousand sessions are searched. */
  sessions(query: {
    after?: string | undefined
    limit: number
    status?: string | undefined
    text?: string | undefined
  }): Promise<Listed<SessionRecord>>
  /**
   * The position of the frame with `seq`; if that frame is not stored, the position of the nearest frame before it.
   * With a scope, frames of a session that had to be read first come after frames with a higher seq.
   */
  placeOf(seq: string): Promise<{ pos: number; stored: boolean }>
  /**
   * The stream's frames after a position, in order. One call scans a part of the log, so a page may
   * be empty with more to come. `next`: the position up to which the log was scanned.
   */
  frames(query: {
    after: number
    sessionId?: string | undefined
  }): Promise<{ frames: StoredFact[]; next: number; more: boolean }>
  session(id: string): Promise<(SessionRecord & { turns: Turn[]; actions: Action[]; calls: Call[] }) | null>
  calls(query: {
    after?: string | undefined
    limit: number
    state?: CallState | undefined
    sessionId?: string | undefined
  }): Promise<Listed<Call>>
  deliveries(query: {
    after?: string | undefined
    limit: number
    status?: DeliveryStatus | undefined
    handler?: string | undefined
    factId?: string | undefined
    sessionId?: string | undefined
    /** Of facts stored since then: our wall clock, milliseconds. */
    since?: number | undefined
  }): Promise<Listed<DeliveryRecord>>
  delivery(id: string): Promise<DeliveryRecord | null>
  /**
   * Some of the pending deliveries that were tried, each the first of its lane, those with the latest retry first. At most a
   * hundred lanes are searched.
   */
  stuck(handler: string): Promise<DeliveryRecord[]>
  /** Turns that are not settled, the oldest first. */
  openTurns(query: { after?: string | undefined; limit: number }): Promise<Listed<OpenTurn>>
  /** Actions that are not resolved, the oldest first. */
  openActions(query: { after?: string | undefined; limit: number }): Promise<Listed<OpenAction>>
  /**
   * Functions that sessions wait for and that no tool with a name in `tools` answers, the longest wait first. Names are cut
   * after 65 characters.
   */
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
  /** Our wall clock: when we first read the action. */
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
