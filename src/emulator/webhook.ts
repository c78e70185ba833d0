import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'
import { Courier, newDelivery, type Delivery } from './delivery.ts'
import type { WebhookType } from './event.ts'
import type { Faults } from './fault.ts'
import type { Ledger } from './ledger.ts'
import type { Limits } from './limits.ts'
import type { OpenDetails } from './profile/details.ts'
import type { Subscription } from './subscription.ts'

interface Parts {
  clock: Clock
  limits: Limits
  faults: Faults
  details: OpenDetails
  ledger: Ledger
  save: () => void
}

/** The organization's webhook subscriptions, and their deliveries. */
export class Webhooks {
  readonly #parts: Parts
  readonly #subscriptions = new Map<string, Subscription>()
  readonly #courier: Courier

  constructor(parts: Parts) {
    this.#parts = parts
    this.#courier = new Courier(parts, (subscription, delivery) => this.#settled(subscription, delivery))
  }

  /** Oldest first. */
  all(): Subscription[] {
    return [...this.#subscriptions.values()]
  }

  /** The subscription with this address and exactly this set of events. */
  twin(url: string, events: readonly string[]): Subscription | undefined {
    const wanted = new Set(events)
    return this.all().find(
      (other) =>
        other.url === url &&
        other.events.every((name) => wanted.has(name)) &&
        wanted.size === new Set(other.events).size,
    )
  }

  add(url: string, events: readonly string[]): Subscription {
    const subscription = {
      id: `whsub_${randomBytes(12).toString('hex')}`,
      url,
      events,
      secret: this.#parts.details.webhook.secretPrefix + randomBytes(24).toString('hex'),
      createdAt: this.#parts.clock.now(),
      active: true,
      deadInARow: 0,
    }
    this.#subscriptions.set(subscription.id, subscription)
    return subscription
  }

  restore(subscription: Subscription): void {
    this.#subscriptions.set(subscription.id, subscription)
  }

  /** Continues the deliveries that were pending when the emulator stopped, each at the time of its next attempt. */
  resume(deliveries: readonly Delivery[]): void {
    for (const delivery of deliveries) {
      const subscription = this.#subscriptions.get(delivery.subscriptionId)
      if (delivery.status === 'pending' && subscription !== undefined)
        this.#courier.resume(subscription, delivery)
    }
  }

  /** Removes a subscription, and drops its pending deliveries. False if it does not exist. */
  remove(id: string): boolean {
    const subscription = this.#subscriptions.get(id)
    if (subscription !== undefined) this.#courier.abandon(subscription, 'the subscription was deleted')
    return this.#subscriptions.delete(id)
  }

  /** Adds a pending delivery for every active subscription with this event. */
  send(type: WebhookType, sessionId: string, turnId: string | null): void {
    const at = this.#parts.clock.now()
    for (const subscription of this.#subscriptions.values()) {
      if (!subscription.active) continue
      if (subscription.events.length > 0 && !subscription.events.includes(type)) continue
      const id = randomBytes(12).toString('hex')
      const body = JSON.stringify(this.#parts.details.webhook.envelope({ id, type, at, sessionId, turnId }))
      const delivery = newDelivery({
        id,
        subscriptionId: subscription.id,
        event: type,
        sessionId,
        turnId,
        body,
        at,
      })
      this.#parts.ledger.delivery(delivery)
      this.#courier.send(subscription, delivery)
    }
  }

  close(): Promise<void> {
    return this.#courier.close()
  }

  #settled(subscription: Subscription, delivery: Delivery): void {
    subscription.deadInARow = delivery.status === 'dead' ? subscription.deadInARow + 1 : 0
    if (subscription.deadInARow < this.#parts.details.webhook.deadBeforeInactive) return
    subscription.active = false
    this.#courier.abandon(subscription, 'the subscription was given up')
  }
}
