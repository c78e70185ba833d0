import type { StoredFact } from './fact.ts'
import type { Lease } from './lease.ts'

export type DeliveryStatus = 'pending' | 'delivered' | 'dead'

/**
 * One attempt of a callback. `status` is the HTTP status (200 for a module that returned). `error`: the reason, if
 * there was no status.
 */
export interface Attempt {
  /** Milliseconds on our wall clock. */
  at: number
  status?: number
  error?: string
  /** Duration, milliseconds. */
  ms: number
  /** The first bytes of the body of a failed response, for the operator. */
  answer?: string
}

/** A pending delivery of a lane, with its fact. */
export interface PendingDelivery {
  /** Attempts that count against the handler's retry policy. */
  attempts: number
  /** Attempts that the end of a process interrupted. They only raise the number of the next attempt. */
  cut: number
  fact: StoredFact
}

/** The first pending deliveries of a lane. */
export interface LanePage {
  deliveries: PendingDelivery[]
  /** The lane had no pending delivery behind these. false: it may have some. */
  complete: boolean
}

/** `delivery.attempt` of the next attempt, from 1. */
export function attemptNumber({ attempts, cut }: PendingDelivery): number {
  return attempts + cut + 1
}

/**
 * A lane is the unit of order: one (handler, session) for ordered handlers, one fact for the
 * others. Only the worker that claimed it delivers it.
 */
export interface Lane {
  /** The number of the lane in the store. */
  id: number
  handler: string
  key: string
  /** The lease of the claim. */
  lease: Lease
}

/** Facts that a commit put into a lane. */
export interface LaneExtension {
  lane: Lane
  /** The lane was empty before, and is claimed for the caller with exactly `deliveries`. */
  claimed: boolean
  deliveries: PendingDelivery[]
}

/** The outcome of an attempt, as the store records it. */
export interface Ack {
  lane: Lane
  pos: number
  result: 'delivered' | 'retry' | 'dead'
  attempts: number
  attempt: Attempt
  /** With `retry`: milliseconds after the commit until the lane is due again. */
  after: number | null
}

/** A delivery as it is shown to people. */
export interface DeliveryRecord {
  id: string
  factId: string
  pos: number
  type: string
  handler: string
  sessionId: string | null
  status: DeliveryStatus
  /** Without their responses: only the last one is stored. */
  attempts: Attempt[]
  lastAnswer: string | null
  /** Milliseconds; null unless pending. */
  nextAt: number | null
}

/** `dlv_<position of the fact>_<number of the handler>`. */
export function deliveryId(pos: number, handlerNumber: number): string {
  return `dlv_${pos}_${handlerNumber}`
}

export function parseDeliveryId(id: string): { pos: number; handlerNumber: number } | null {
  const match = /^dlv_(\d{1,15})_(\d{1,9})$/.exec(id)
  return match === null ? null : { pos: Number(match[1]), handlerNumber: Number(match[2]) }
}
