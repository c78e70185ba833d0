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

/**
 * The service that we follow, one method an operation that we use. Every method throws ServiceError. An operation
 * that discovery did not find throws one with the code `route_unknown` and status 404 is never used for that.
 */
export interface Service {
  health(): Promise<Health>
  listSessions(query: ListQuery): Promise<Page<Session>>
  readSession(id: string): Promise<Session>
  listTurns(sessionId: string, query: ListQuery): Promise<Page<Turn>>
  /** The single turn, when its route is known; otherwise null and the caller reads the list. */
  readTurn(sessionId: string, turnId: string): Promise<Turn | null>
  listItems(sessionId: string, query: ListQuery): Promise<Page<Item>>
  /** Published artifacts of a session, as given; null when the route is not known. */
  listArtifacts(sessionId: string): Promise<JsonObject[] | null>
  /** @returns the service's word for what became of the answer (`not_delivered`, …), null when it said none. */
  answer(
    sessionId: string,
    callId: string,
    answer: Answer,
    key: string,
    traceparent?: string,
  ): Promise<string | null>
  sendMessage(sessionId: string, text: string, key: string): Promise<void>
  /** Whether a POST goes out with its key: the service then takes it once, however often it is sent. */
  idempotent(): boolean
  listWebhooks(): Promise<WebhookSubscription[]>
  createWebhook(url: string, key: string): Promise<WebhookSubscription>
  deleteWebhook(id: string): Promise<void>
  /** Opens the organization-wide stream. `cursor` null: live frames only. Throws on any status but 200. */
  openStream(cursor: string | null, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>
  /** The service's clock less ours, milliseconds, from the `Date` of its answers; 0 until one came. */
  clockOffset(): number
  /** What the answers leave open of `clockOffset`, milliseconds; infinite until one told the time. */
  clockOpen(): number
  /** False from a 401 until the token changes: no request is sent then. */
  authorized(): boolean
  /** Calls `listener` whenever `authorized()` changes. */
  onAuthorization(listener: (authorized: boolean) => void): void
}
