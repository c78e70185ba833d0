import type { Action } from './action.ts'
import type { Delivery } from './delivery.ts'
import type { AnswerRecord, MessageRecord, ProbeRecord } from './ledger.ts'
import type { Session } from './session.ts'
import type { Turn } from './turn.ts'
import type { World } from './world.ts'

export interface LedgerEvent {
  seq: number
  at: number
  type: string
  session_id: string
  turn_id: string | null
}

/** Everything that happened, with the same names in every profile. */
export interface LedgerView {
  now: number
  open_details: string
  first_seq: number
  last_seq: number
  events: LedgerEvent[]
  sessions: LedgerSession[]
  turns: LedgerTurn[]
  actions: LedgerAction[]
  answers: AnswerRecord[]
  messages: MessageRecord[]
  subscriptions: { id: string; url: string; events: readonly string[]; active: boolean }[]
  deliveries: LedgerDelivery[]
  /** Trials of provider keys. */
  probes: ProbeRecord[]
  /** How many entries of each kind were dropped to keep within bounds. */
  forgotten: { events: number; actions: number; answers: number; messages: number; deliveries: number }
}

export interface LedgerSession {
  id: string
  title: string
  status: string
  updated_at: number
  deleted_at: number | null
  required: string[]
  queued: number
}

export interface LedgerTurn {
  id: string
  session_id: string
  /** As the service shows it: the fourth status has the profile's word. */
  status: string
  completed_at: number | null
  artifacts: Turn['artifacts']
  skipped: Turn['skipped']
  published: string[]
  error: Turn['error']
}

export interface LedgerAction {
  call_id: string
  type: Action['type']
  session_id: string
  turn_id: string
  name: string
  arguments: unknown
  created_at: number
  expires_at: number | null
  resolved_at: number | null
  resolution: Action['resolution']
}

export type LedgerDelivery = Pick<Delivery, 'id' | 'event' | 'status' | 'reason' | 'attempts'> & {
  subscription_id: string
  session_id: string
  turn_id: string | null
  created_at: number
}

/** The current ledger; `afterSeq` omits the events up to there. */
export function viewLedger(world: World, afterSeq: number): LedgerView {
  const { ledger, log, sessions } = world
  const all = [...sessions.live(), ...sessions.deleted()]
  return {
    now: world.clock.now(),
    open_details: world.details.name,
    first_seq: log.first,
    last_seq: log.last,
    events: log.after(afterSeq).map(({ seq, at, type, sessionId, turnId }) => ({
      seq,
      at,
      type,
      session_id: sessionId,
      turn_id: turnId,
    })),
    sessions: all.map(viewSession),
    turns: all.flatMap((session) => session.turns.map((turn) => viewTurn(world, session, turn))),
    actions: ledger.actions.all().map(viewAction),
    answers: [...ledger.answers.all()],
    messages: [...ledger.messages.all()],
    subscriptions: world.webhooks.all().map(({ id, url, events, active }) => ({ id, url, events, active })),
    deliveries: ledger.deliveries.all().map(viewDelivery),
    probes: [...ledger.probes.all()],
    forgotten: {
      events: log.first - 1,
      actions: ledger.actions.forgotten,
      answers: ledger.answers.forgotten,
      messages: ledger.messages.forgotten,
      deliveries: ledger.deliveries.forgotten,
    },
  }
}

function viewSession(session: Session): LedgerSession {
  return {
    id: session.id,
    title: session.title,
    status: session.status,
    updated_at: session.updatedAt,
    deleted_at: session.deletedAt,
    required: session.actions.map(({ callId }) => callId),
    queued: session.queue.length,
  }
}

function viewTurn(world: World, session: Session, turn: Turn): LedgerTurn {
  return {
    id: turn.id,
    session_id: turn.sessionId,
    status: turn.status === 'stopped' ? world.details.stopped : turn.status,
    completed_at: turn.completedAt,
    artifacts: turn.artifacts,
    skipped: turn.skipped,
    published: session.artifacts.filter(({ turnId }) => turnId === turn.id).map(({ path }) => path),
    error: turn.error,
  }
}

function viewAction(action: Action): LedgerAction {
  return {
    call_id: action.callId,
    type: action.type,
    session_id: action.sessionId,
    turn_id: action.turnId,
    name: action.name,
    arguments: action.arguments,
    created_at: action.createdAt,
    expires_at: action.expiresAt,
    resolved_at: action.resolvedAt,
    resolution: action.resolution,
  }
}

function viewDelivery(delivery: Delivery): LedgerDelivery {
  return {
    id: delivery.id,
    subscription_id: delivery.subscriptionId,
    event: delivery.event,
    session_id: delivery.sessionId,
    turn_id: delivery.turnId,
    created_at: delivery.createdAt,
    status: delivery.status,
    reason: delivery.reason,
    attempts: delivery.attempts,
  }
}
