import type { Agent } from 'undici'
import PQueue from 'p-queue'
import { signServiceWebhook } from '../std/signature.ts'
import type { Clock } from './clock.ts'
import type { WebhookType } from './event.ts'
import type { Faults } from './fault.ts'
import type { Limits } from './limits.ts'
import type { Subscription } from './subscription.ts'

/** Attempts under way at once for one subscription; others wait in memory. */
const CONCURRENCY = 16

/** Deliveries that may be pending for one subscription; each keeps its body in memory. */
const MOST_PENDING = 50_000

export interface Attempt {
  readonly at: number
  readonly ms: number
  /** The receiver's status, or why there was none. */
  readonly status: number | null
  readonly error: string | null
}

/** One event for one subscription, with its attempts. */
export interface Delivery {
  readonly id: string
  readonly subscriptionId: string
  readonly event: WebhookType
  readonly sessionId: string
  readonly turnId: string | null
  readonly body: string
  readonly createdAt: number
  readonly attempts: Attempt[]
  status: 'pending' | 'delivered' | 'dead'
  /** Why it is dead. */
  reason: string | null
}

export function newDelivery(
  of: Pick<Delivery, 'id' | 'subscriptionId' | 'event' | 'sessionId' | 'turnId' | 'body'> & { at: number },
): Delivery {
  const { at, ...rest } = of
  return { ...rest, createdAt: at, attempts: [], status: 'pending', reason: null }
}

interface Parts {
  clock: Clock
  limits: Limits
  faults: Faults
  /** Called before a request is sent. */
  save: () => void
}

interface Held {
  subscription: Subscription
  delivery: Delivery
}

/**
 * Sends deliveries: signed, at least once, with six attempts over about nine hours. An attempt is
 * abandoned after ten seconds (rules LIM-27, LIM-28). `settled` is called for each delivery that
 * succeeded or is dead.
 */
export class Courier {
  readonly #parts: Parts
  readonly #settled: (subscription: Subscription, delivery: Delivery) => void
  #agent: Agent | undefined
  readonly #queues = new Map<string, PQueue>()
  readonly #pending = new Map<string, Set<Delivery>>()
  /** Deliveries that wait for the end of `webhooks_off`, or for the second one of a pair that is sent in reverse order. */
  #waiting: Held[] = []
  #partner: Held | undefined
  readonly #closing = new AbortController()

  constructor(parts: Parts, settled: (subscription: Subscription, delivery: Delivery) => void) {
    this.#parts = parts
    this.#settled = settled
    parts.faults.onChange((settings) => {
      if (settings.webhooks_off !== true) this.#resume()
      if (settings.reorder_webhooks !== true) this.#releasePartner()
    })
  }

  send(subscription: Subscription, delivery: Delivery): void {
    const pending = this.#pending.get(subscription.id) ?? new Set()
    if (pending.size >= MOST_PENDING) {
      return this.#finish(subscription, delivery, 'dead', `${MOST_PENDING} deliveries are pending already`)
    }
    this.#pending.set(subscription.id, pending.add(delivery))
    if (!this.#parts.faults.on('reorder_webhooks')) return this.#schedule({ subscription, delivery }, 0)
    if (this.#partner === undefined) {
      this.#partner = { subscription, delivery }
      return
    }
    this.#schedule({ subscription, delivery }, 0)
    this.#releasePartner()
  }

  /** Resumes a delivery of an earlier process. */
  resume(subscription: Subscription, delivery: Delivery): void {
    const { clock, limits } = this.#parts
    this.#pending.set(subscription.id, (this.#pending.get(subscription.id) ?? new Set()).add(delivery))
    const last = delivery.attempts.at(-1)
    const due = last === undefined ? 0 : last.at + (limits.webhookRetryMs[delivery.attempts.length - 1] ?? 0)
    this.#schedule({ subscription, delivery }, Math.max(0, due - clock.now()))
  }

  /** Gives up all pending deliveries of a subscription. */
  abandon(subscription: Subscription, reason: string): void {
    for (const delivery of this.#pending.get(subscription.id) ?? []) {
      delivery.status = 'dead'
      delivery.reason = reason
    }
    this.#pending.delete(subscription.id)
    // Deliveries in the queue that are no longer pending are removed without a request.
    this.#queues.delete(subscription.id)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    for (const queue of this.#queues.values()) queue.clear()
    await this.#agent?.destroy()
  }

  #releasePartner(): void {
    const partner = this.#partner
    this.#partner = undefined
    // Longer than a delivery over loopback takes, so that the earlier one arrives last.
    if (partner !== undefined) this.#schedule(partner, 50)
  }

  #resume(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const held of waiting) this.#schedule(held, 0)
  }

  #schedule(held: Held, afterMs: number): void {
    const wait = afterMs + this.#parts.faults.webhookDelayMs
    if (wait === 0) this.#enqueue(held)
    else this.#parts.clock.after(wait, () => this.#enqueue(held))
  }

  #enqueue(held: Held): void {
    if (held.delivery.status !== 'pending' || this.#closing.signal.aborted) return
    if (this.#parts.faults.on('webhooks_off')) return void this.#waiting.push(held)
    const { id } = held.subscription
    let queue = this.#queues.get(id)
    if (queue === undefined) {
      queue = new PQueue({ concurrency: CONCURRENCY })
      this.#queues.set(id, queue)
    }
    this.#parts.clock.during(queue.add(() => this.#try(held)))
  }

  async #try({ subscription, delivery }: Held): Promise<void> {
    // The request that caused the delivery is completed first, and the state is stored before the delivery is sent.
    await Promise.resolve()
    if (delivery.status !== 'pending' || this.#closing.signal.aborted) return
    if (this.#parts.faults.use('give_up_webhooks'))
      return this.#finish(subscription, delivery, 'dead', 'given up by a fault')
    this.#parts.save()
    const attempt = await this.#post(subscription, delivery)
    if (this.#closing.signal.aborted) return
    delivery.attempts.push(attempt)
    if (attempt.status !== null && attempt.status >= 200 && attempt.status < 300) {
      this.#finish(subscription, delivery, 'delivered', null)
      for (let copy = this.#parts.faults.webhookCopies; copy > 0; copy--)
        await this.#post(subscription, delivery)
      return
    }
    const next = this.#parts.limits.webhookRetryMs[delivery.attempts.length - 1]
    if (next !== undefined) return this.#schedule({ subscription, delivery }, next)
    const last = attempt.error ?? `status ${attempt.status}`
    this.#finish(
      subscription,
      delivery,
      'dead',
      `${delivery.attempts.length} attempts failed, the last: ${last}`,
    )
  }

  #finish(
    subscription: Subscription,
    delivery: Delivery,
    status: 'delivered' | 'dead',
    reason: string | null,
  ): void {
    delivery.status = status
    delivery.reason = reason
    this.#pending.get(subscription.id)?.delete(delivery)
    this.#settled(subscription, delivery)
  }

  /** One request. Redirects are not followed, and the answer's body is not read. */
  async #post(subscription: Subscription, delivery: Delivery): Promise<Attempt> {
    const { clock, limits, faults } = this.#parts
    // Loaded with the first delivery: most emulators never make one.
    const { Agent, request } = await import('undici')
    this.#agent ??= new Agent({ connections: CONCURRENCY, pipelining: 1, keepAliveTimeout: 4000 })
    const at = clock.now()
    const timestamp = String(at + faults.clockSkewMs)
    const secret = faults.on('forge_webhooks') ? `${subscription.secret}-forged` : subscription.secret
    const timeout = new AbortController()
    const timer = clock.after(limits.webhookTimeoutMs, () => timeout.abort())
    const signal = AbortSignal.any([timeout.signal, this.#closing.signal])
    try {
      const response = await request(subscription.url, {
        method: 'POST',
        dispatcher: this.#agent,
        signal,
        body: delivery.body,
        headers: {
          'content-type': 'application/json',
          'x-service-timestamp': timestamp,
          'x-service-signature': signServiceWebhook(secret, timestamp, delivery.body),
        },
      })
      await response.body.dump({ limit: 65_536, signal })
      return { at, ms: clock.now() - at, status: response.statusCode, error: null }
    } catch (error) {
      const why = timeout.signal.aborted ? 'no answer in time' : messageOf(error)
      return { at, ms: clock.now() - at, status: null, error: why }
    } finally {
      timer.cancel()
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
