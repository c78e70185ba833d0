import type { Health, Item, Page, Session, Turn, WebhookSubscription } from './resource.ts'
import type { JsonObject } from '../std/json.ts'

export interface ListQuery {
  limit?: number
  order?: 'asc' | 'desc'
  after?: string
  status?: string
}

/** The body of an answer to a function call (rules ACT-13, ACT-15). */
export type Answer = { output: string } | { error: string }

/** How to send a request that has an effect on the service. */
export interface Posting {
  /** The idempotency value, the same for every attempt. */
  key: string
  /** W3C trace context. */
  traceparent?: string | undefined
  /**
   * A process is frozen while an answer waits to be sent, and another process takes over the session: `maySend`
   * returns false, and the answer fails with the code `superseded`. It is called before each attempt. Absent: every
   * attempt may be sent.
   */
  maySend?: () => boolean
}

/**
 * The service that we follow, with one method for each operation that we use. Every method throws ServiceError. An
 * operation that discovery did not find throws one with the code `route_unknown`, never with status 404.
 */
export interface Service {
  health(): Promise<Health>
  listSessions(query: ListQuery): Promise<Page<Session>>
  /** `signal` ends the request. */
  readSession(id: string, signal?: AbortSignal): Promise<Session>
  listTurns(sessionId: string, query: ListQuery): Promise<Page<Turn>>
  /** The single turn. null if its route is unknown: then the caller reads the list. */
  readTurn(sessionId: string, turnId: string): Promise<Turn | null>
  listItems(sessionId: string, query: ListQuery): Promise<Page<Item>>
  /** Published artifacts of a session, unchanged; null when the route is unknown. */
  listArtifacts(sessionId: string): Promise<JsonObject[] | null>
  /** @returns the service's word for the outcome of the answer (`not_delivered`, …), null when the reply has none. */
  answer(sessionId: string, callId: string, answer: Answer, posting: Posting): Promise<string | null>
  sendMessage(sessionId: string, text: string, posting: Posting): Promise<void>
  /** Whether a POST is sent with an idempotency key: then the service processes it once, even if we send it again. */
  idempotent(): boolean
  listWebhooks(): Promise<WebhookSubscription[]>
  createWebhook(url: string, key: string): Promise<WebhookSubscription>
  deleteWebhook(id: string): Promise<void>
  /** Opens the organization-wide stream. `cursor` null: live frames only. Throws on any status but 200. */
  openStream(cursor: string | null, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  /** The service's clock minus ours, milliseconds, from the `Date` of its answers. 0 before the first answer. */
  clockOffset(): number
  /** The uncertainty of `clockOffset`, milliseconds; infinite before the first answer with a time. */
  clockOpen(): number
  /** False from a 401 until the token changes. No request is sent in this time. */
  authorized(): boolean
  /** Calls `listener` whenever `authorized()` changes. */
  onAuthorization(listener: (authorized: boolean) => void): void
  /**
   * The process stops: a request that waits for the rate budget or for its next attempt, or would have to, fails with the
   * code `stopped`. Other requests are still sent.
   */
  drain(): void
}
