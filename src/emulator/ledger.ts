import type { Action } from './action.ts'
import type { Delivery } from './delivery.ts'
import type { Probe } from './model.ts'
import { Roll } from './roll.ts'

export interface AnswerRecord {
  at: number
  call_id: string
  session_id: string
  output: string | null
  error: string | null
  outcome: string
  idempotency_key: string | null
  token_id: string
}

export interface MessageRecord {
  at: number
  id: string
  session_id: string
  text: string
  kind: 'message' | 'steer'
  queued: boolean
  idempotency_key: string | null
  token_id: string
}

export interface ProbeRecord extends Probe {
  at: number
}

/**
 * What happened in the emulator, besides the current resources: requests, actions and deliveries. Tests compare their
 * results with it.
 */
export class Ledger {
  readonly actions: Roll<Action>
  readonly answers: Roll<AnswerRecord>
  readonly messages: Roll<MessageRecord>
  readonly deliveries: Roll<Delivery>
  readonly probes: Roll<ProbeRecord>
  readonly #actionById = new Map<string, Action>()
  readonly #limit: number

  /** `limit`: entries kept of each kind. */
  constructor(limit: number) {
    this.#limit = limit
    this.actions = new Roll(limit)
    this.answers = new Roll(limit)
    this.messages = new Roll(limit)
    this.deliveries = new Roll(limit)
    this.probes = new Roll(limit)
  }

  /** Restores the actions. */
  restoreActions(actions: Action[], forgotten: number): void {
    this.actions.restore(actions, forgotten)
    for (const action of actions) this.#actionById.set(action.callId, action)
  }

  action(action: Action): void {
    this.actions.push(action)
    this.#actionById.set(action.callId, action)
    const [oldest] = this.#actionById.keys()
    if (oldest !== undefined && this.#actionById.size > this.#limit) this.#actionById.delete(oldest)
  }

  /** An action of this session, pending or over. */
  findAction(sessionId: string, callId: string): Action | undefined {
    const action = this.#actionById.get(callId)
    return action?.sessionId === sessionId ? action : undefined
  }

  answer(record: AnswerRecord): void {
    this.answers.push(record)
  }

  message(record: MessageRecord): void {
    this.messages.push(record)
  }

  probe(record: ProbeRecord): void {
    this.probes.push(record)
  }

  delivery(delivery: Delivery): void {
    this.deliveries.push(delivery)
  }
}
