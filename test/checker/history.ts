import type { EventData } from '../support/app.ts'

/** What must never be, by the invariant that it breaks. */
export interface Fault {
  invariant: string
  message: string
}

/** What the sidecar reported of one thing: a callback as a handler got it, or a fact as it is stored. */
export interface Report {
  id: string
  type: string
  timestamp?: string
  session_id: string | null
  data: EventData
}

/** What happened at the service, as far as it has to be reported. The words are those of the emulator's ledger. */
export interface ServiceHistory {
  events: readonly { seq: number; type: string; session_id: string | null }[]
  sessions: readonly ServiceSession[]
  turns: readonly ServiceTurn[]
  actions: readonly ServiceAction[]
}

export interface ServiceSession {
  id: string
  status: string
  created_at?: number
  deleted_at: number | null
  /** Call ids that it waits for. */
  required: readonly string[]
}

export interface ServiceTurn {
  id: string
  session_id: string
  status: string
  completed_at: number | null
  artifacts: string | null
}

export interface ServiceAction {
  call_id: string
  resolved_at: number | null
}

/** A function call as the service has it. */
export interface ServiceCall {
  call_id: string
  /** The sidecar has to answer it. */
  ours: boolean
  open: boolean
  /** The service accepted an answer, or refused the output. */
  answered: boolean
  refused: boolean
  /** The sandbox did not wait for the answer any more; null: the service does not say so. */
  notDelivered: boolean | null
}

/** A call as the ledger of the sidecar has it. */
export interface LedgerCall {
  call_id: string
  state: string
  outcome: string | null
  ended_at: number | null
}

/** One run of a tool, with its idempotency key. */
export interface Run {
  call_id: string
  name: string
  key: string | null
}

/** An answer that reached the service whole. `status`: what the service replied; null: nothing. */
export interface Posting {
  call_id: string
  kind: 'output' | 'error'
  text: string
  key: string | null
  status: number | null
  /** When it was sent and when it arrived, on one clock; null: only the order of arrivals is known. */
  times: { sent: number; arrived: number } | null
}

export type DeliveryStatus = 'pending' | 'delivered' | 'dead'

/** A delivery as the sidecar has it. null: it has none for this fact, which the handler selects. */
export interface DeliveryEntry {
  id: string
  type: string
  handler: string
  status: DeliveryStatus | null
}

/** What the handler saw of a fact. */
export interface Receipt {
  /** It answered 2xx to an attempt. */
  taken: boolean
  /** Such an answer reached the sidecar. */
  heard: boolean
  /** It said that it never takes the fact, or all attempts were used up. */
  givenUp: boolean
}

/** What the sidecar has stored of the service's resources. */
export interface Knowledge {
  sessions: ReadonlyMap<string, { status: string; updated_at?: number; deleted_at: number | null }>
  /** JSON as read; null: only a frame reported the turn. */
  turns: ReadonlyMap<string, string | null>
  openActions: readonly { call_id: string; session_id: string }[]
}

/** Fact columns that make a report. */
export interface FactRow {
  id: string
  type: string
  session_id: string | null
  family: string
  seq: string | null
  body: string
}

export function reportOf({ id, type, session_id, family, seq, body }: FactRow): Report {
  const data = JSON.parse(body) as EventData
  if (family === 'state') return { id, type, session_id, data }
  return { id, type, session_id, data: { ...data, seq: seq === null ? null : Number(seq) } }
}

/** The first fault of the first check that finds one: the others cost more and say the same. */
export function firstFault(...checks: readonly (() => readonly Fault[])[]): Fault | null {
  for (const find of checks) {
    const [fault] = find()
    if (fault !== undefined) return fault
  }
  return null
}
