import type { Agenda } from '../agenda.ts'
import type { Fate } from '../scope.ts'
import type { CallPlan, TurnPlan } from '../scenario.ts'
import type { Details } from './details.ts'

export interface ModelAction {
  type: 'function_call' | 'approval' | 'question'
  callId: string
  turnId: string
  createdAt: number
  expiresAt: number | null
  /** null on what a person does. */
  call: ModelCall | null
}

export interface ModelCall {
  callId: string
  sessionId: string
  turnId: string
  plan: CallPlan
  /** The answer that the service took, null while there is none. */
  taken: string | null
  /** The service's clock. */
  expiresAt: number | null
  notDelivered: boolean
  /** Its app has seen that the session no longer waits, and will not answer. */
  forsaken: boolean
  refused: boolean
  /** When its agent stopped waiting for it, on the service's clock; null: it waits. */
  goneAt: number | null
}

export interface ModelTurn {
  id: string
  sessionId: string
  status: string
  createdAt: number
  startedAt: number
  completedAt: number | null
  artifacts: string | null
  /** When its artifacts were final. */
  settledAt: number | null
  skipped: { path: string; reason: string }[]
  plan: TurnPlan
}

export interface ModelItem {
  id: string
  type: string
  event: string
  createdAt: number
  content: string
}

export interface ModelSession {
  id: string
  status: 'idle' | 'working' | 'requires_action' | 'failed'
  createdAt: number
  updatedAt: number
  actions: ModelAction[]
  /** The newest last, as are items. */
  turns: ModelTurn[]
  items: ModelItem[]
  artifacts: { id: string; turnId: string }[]
  queue: TurnPlan[]
  busy: boolean
  deleted: boolean
  /** True time. */
  deletedAt: number | null
  /** A running process got the answer. */
  missed: boolean
  metadata: Record<string, string>
  createdBy: string
  /** Whose it is, as the scope of the last life has it. */
  fate: Fate
}

export interface ModelEvent {
  /** True time. */
  at: number
  seq: number
  sessionId: string | null
  type: string
  /** The frame as it goes over the wire. */
  frame: string
}

/** What the service knows, and how it says so. A second reading of the interface, not the emulator's. */
export class ServiceState {
  readonly sessions = new Map<string, ModelSession>()
  readonly events: ModelEvent[] = []
  readonly calls = new Map<string, ModelCall>()
  readonly details: Details
  readonly #agenda: Agenda
  readonly #skew: number
  #made = 0
  onFrame: (frame: string, seq: number | null) => void = () => undefined
  onNotice: (type: string, session: ModelSession, turn: ModelTurn | null) => void = () => undefined

  constructor(agenda: Agenda, details: Details, skew: number) {
    this.#agenda = agenda
    this.details = details
    this.#skew = skew
  }

  /** The service's clock, milliseconds. */
  now(): number {
    return Math.floor(this.#agenda.now + this.#skew) + this.details.fraction
  }

  id(prefix: string): string {
    return `${prefix}${(++this.#made).toString(36).padStart(4, '0')}`
  }

  alive(): ModelSession[] {
    return [...this.sessions.values()].filter(({ deleted }) => !deleted)
  }

  touch(session: ModelSession): void {
    session.updatedAt = Math.max(session.updatedAt, this.now())
  }

  become(session: ModelSession, status: ModelSession['status']): void {
    if (session.status === status) return
    session.status = status
    this.touch(session)
    const name = status === 'requires_action' ? 'action_required' : status
    this.onNotice(`session.${name}`, session, null)
  }

  /** A persisted event: it has a seq, and an item where there is a session. */
  emit(
    type: string,
    session: ModelSession | null,
    turnId: string | null,
    payload: object,
    itemType?: string,
    content = type,
  ): void {
    const seq = (this.events.at(-1)?.seq ?? 0) + this.details.seqStep
    const frame = this.#frame(type, seq, session?.id ?? null, turnId, payload)
    this.events.push({ at: this.#agenda.now, seq, sessionId: session?.id ?? null, type, frame })
    if (session !== null) {
      this.touch(session)
      if (itemType !== undefined) {
        session.items.push({
          id: this.id('item_'),
          type: itemType,
          event: type,
          createdAt: this.now(),
          content,
        })
      }
    }
    this.onFrame(frame, seq)
  }

  transient(type: string, session: ModelSession, turnId: string, payload: object): void {
    this.onFrame(this.#frame(type, null, session.id, turnId, payload), null)
  }

  stopFrame(fromSeq: number): string {
    const at = this.details.fromSeqIn === 'data' ? { from_seq: fromSeq } : { payload: { from_seq: fromSeq } }
    return `event: ${this.details.stopFrame}\ndata: ${JSON.stringify({ type: this.details.stopFrame, seq: null, ...at })}\n\n`
  }

  #frame(
    type: string,
    seq: number | null,
    session: string | null,
    turn: string | null,
    payload: object,
  ): string {
    const { ids, idsIn } = this.details
    const named = { ...nameOf(ids, 'session', session), ...nameOf(ids, 'turn', turn) }
    const data = {
      type,
      internal_type: `x.${type}`,
      seq,
      ...(idsIn === 'data' ? named : {}),
      payload: { ...payload, ...(idsIn === 'payload' ? named : {}) },
    }
    const id = seq === null ? '' : `id: ${seq}\n`
    return `event: ${type}\n${id}data: ${JSON.stringify(data)}\n\n`
  }
}

function nameOf(style: Details['ids'], what: string, id: string | null): object {
  if (id === null) return {}
  if (style === 'object') return { [what]: { id } }
  return style === 'snake' ? { [`${what}_id`]: id } : { [`${what}Id`]: id }
}
