import { createHmac } from 'node:crypto'
import type { Agenda } from '../agenda.ts'
import type { Chance } from '../chance.ts'
import { WEBHOOK_SECRET } from '../oracle/secrets.ts'
import type { Sites } from '../sites.ts'
import type { ModelSession, ModelTurn, ServiceState } from './state.ts'

/** The real schedule takes nine hours; what matters is that there is an end to it. Milliseconds. */
const SCHEDULE = [2000, 10_000, 40_000, 90_000, 180_000]
const PATIENCE = 10_000

export interface Subscription {
  id: string
  url: string
  secret: string
  active: boolean
}

export interface Parcel {
  sessionId: string
  signature: string
  timestamp: string
  body: Buffer
}

/** Webhook subscriptions and their deliveries: at least once, out of order, given up in the end. */
export class Webhooks {
  readonly subscriptions: Subscription[] = []
  readonly #agenda: Agenda
  readonly #chance: Chance
  readonly #sites: Sites
  readonly #state: ServiceState
  /** Deliveries that are still pending. */
  pending = 0
  /** Hands a parcel to the sidecar. Answers once at most, with its status. */
  carry: (parcel: Parcel, answer: (status: number) => void) => void = () => undefined

  constructor(agenda: Agenda, chance: Chance, sites: Sites, state: ServiceState) {
    this.#agenda = agenda
    this.#chance = chance
    this.#sites = sites
    this.#state = state
    state.onNotice = (type, session, turn) => {
      for (const subscription of this.subscriptions) this.#enqueue(subscription, type, session, turn)
    }
  }

  subscribe(url: string): Subscription {
    const made = {
      id: this.#state.id('whsub_'),
      url,
      secret: `${WEBHOOK_SECRET}${this.#chance.hex(8)}`,
      active: true,
    }
    this.subscriptions.push(made)
    return made
  }

  unsubscribe(id: string): boolean {
    const at = this.subscriptions.findIndex((subscription) => subscription.id === id)
    if (at !== -1) this.subscriptions.splice(at, 1)
    return at !== -1
  }

  #enqueue(subscription: Subscription, type: string, session: ModelSession, turn: ModelTurn | null): void {
    if (!subscription.active) return
    const ids = { session_id: session.id, ...(turn === null ? {} : { turn_id: turn.id }) }
    const id = this.#state.id('del_')
    const body =
      this.#state.details.webhook === 'flat'
        ? { id, type, data: ids }
        : {
            id,
            event: { name: type },
            data: turn === null ? { object: 'session', id: session.id } : { turn, ...ids },
          }
    this.pending++
    this.#attempt(subscription, session.id, Buffer.from(JSON.stringify(turnless(body))), 0)
  }

  #attempt(subscription: Subscription, sessionId: string, body: Buffer, failures: number): void {
    const fault = this.#sites.pass('webhook', 'before', ['lost', 'twice', 'slow'])
    const timestamp = String(Math.floor(this.#state.now()))
    const signature = createHmac('sha256', subscription.secret)
      .update(`${timestamp}.`)
      .update(body)
      .digest('hex')
    let over = false
    const done = (good: boolean): void => {
      if (over) return
      over = true
      const wait = SCHEDULE[failures]
      if (good) this.pending--
      else if (wait === undefined || !this.subscriptions.includes(subscription)) {
        subscription.active = false
        this.pending--
      } else this.#agenda.in(wait, () => this.#attempt(subscription, sessionId, body, failures + 1))
    }
    this.#agenda.in(PATIENCE, () => done(false))
    const send = (ms: number): void => {
      this.#agenda.in(ms, () =>
        this.carry({ sessionId, signature, timestamp, body }, (status) => {
          if (this.#sites.pass('webhook', 'after', ['lost_reply']) === null) {
            this.#agenda.in(this.#chance.int(1, 30), () => done(status >= 200 && status < 300))
          }
        }),
      )
    }
    if (fault === 'lost') return
    send(fault === 'slow' ? this.#chance.int(500, 8000) : this.#chance.int(1, 60))
    if (fault === 'twice') send(this.#chance.int(1, 3000))
  }
}

/** Ids only: the object itself is never in it. */
function turnless(body: object): object {
  return JSON.parse(
    JSON.stringify(body, (key, value: unknown) =>
      key === 'turn' && typeof value === 'object' && value !== null && 'id' in value
        ? { id: value.id }
        : value,
    ),
  ) as object
}
