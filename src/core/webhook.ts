import type { WebhookOutcome } from './observer.ts'

/** The headers of a delivery; undefined when one is missing or came more than once. */
export interface WebhookHead {
  signature: string | undefined
  timestamp: string | undefined
}

/** A received delivery, not verified. */
export interface WebhookDelivery extends WebhookHead {
  body: Buffer
}

export interface WebhookAnswer {
  status: 200 | 401 | 503
  outcome: WebhookOutcome
}
