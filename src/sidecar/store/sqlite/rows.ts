import { crc32 } from 'node:zlib'
import type { Call, CallState } from '../../../core/call.ts'
import type { Fact, Seen, StoredFact } from '../../../core/fact.ts'
import { parseJson, PASSED_ON, writeJson, type JsonObject } from '../../../std/json.ts'

/**
 * Rows as our own migrations define them (STRICT tables), and what they mean. Facts carry a checksum beside, since they
 * are what we promised to keep.
 */

export interface FactRow {
  pos: number
  id: string
  type: string
  session_id: string | null
  turn_id: string | null
  at: number
  family: Fact['family']
  seq: string | null
  body: string
  subject: string | null
  seen_stream: number | null
  seen_webhook: number | null
  seen_poll: number | null
  checksum: number
}

export const FACT_COLUMNS =
  'f.pos, f.id, f.type, f.session_id, f.turn_id, f.at, f.family, f.seq, f.body, f.subject, ' +
  'f.seen_stream, f.seen_webhook, f.seen_poll, f.checksum'

export function checksum(fact: Pick<Fact, 'id' | 'type' | 'sessionId' | 'body'>): number {
  return crc32(fact.body, crc32(`${fact.id}\n${fact.type}\n${fact.sessionId ?? ''}`))
}

/** null when the row is not what was written. */
export function factOf(row: FactRow): StoredFact | null {
  const fact: StoredFact = {
    pos: row.pos,
    id: row.id,
    type: row.type,
    sessionId: row.session_id,
    turnId: row.turn_id,
    at: row.at,
    family: row.family,
    seq: row.seq,
    body: row.body,
    subject: row.subject,
    seen: seenOf(row),
  }
  return checksum(fact) === row.checksum ? fact : null
}

export interface SeenColumns {
  seen_stream: number | null
  seen_webhook: number | null
  seen_poll: number | null
}

export function seenOf(row: SeenColumns): Seen {
  const seen: Seen = {}
  if (row.seen_stream !== null) seen.stream = row.seen_stream
  if (row.seen_webhook !== null) seen.webhook = row.seen_webhook
  if (row.seen_poll !== null) seen.poll = row.seen_poll
  return seen
}

export interface CallRow {
  call_id: string
  session_id: string
  turn_id: string | null
  name: string
  state: CallState
  action: string
  attempts: number
  uncertain: number
  deferred: number
  result_kind: 'output' | 'error' | null
  result_text: string | null
  posts: number
  unsure: number
  outcome: string | null
  error: string | null
  created_at: number | null
  expires_at: number | null
  received_at: number
  started_at: number | null
  finished_at: number | null
  ended_at: number | null
  due_at: number
}

export function callOf(row: CallRow): Call {
  return {
    callId: row.call_id,
    sessionId: row.session_id,
    turnId: row.turn_id,
    name: row.name,
    state: row.state,
    action: objectOf(row.action),
    attempts: row.attempts,
    uncertain: row.uncertain === 1,
    deferred: row.deferred === 1,
    result: row.result_kind === null ? null : { kind: row.result_kind, text: row.result_text ?? '' },
    posts: row.posts,
    unsure: row.unsure === 1,
    outcome: row.outcome,
    error: row.error,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    receivedAt: row.received_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    endedAt: row.ended_at,
  }
}

export function callRow(call: Call, dueAt: number): CallRow {
  return {
    call_id: call.callId,
    session_id: call.sessionId,
    turn_id: call.turnId,
    name: call.name,
    state: call.state,
    action: writeJson(call.action),
    attempts: call.attempts,
    uncertain: call.uncertain ? 1 : 0,
    deferred: call.deferred ? 1 : 0,
    result_kind: call.result?.kind ?? null,
    result_text: call.result?.text ?? null,
    posts: call.posts,
    unsure: call.unsure ? 1 : 0,
    outcome: call.outcome,
    error: call.error,
    created_at: call.createdAt,
    expires_at: call.expiresAt,
    received_at: call.receivedAt,
    started_at: call.startedAt,
    finished_at: call.finishedAt,
    ended_at: call.endedAt,
    due_at: dueAt,
  }
}

export interface TurnRow {
  id: string
  session_id: string
  created_at: number | null
  raw: string | null
  final: number
  settled: number
  final_fact: number
  ended_frame_at: number | null
  final_read_at: number | null
}

export interface SessionRow {
  id: string
  status: string
  updated_at: number
  raw: string
  at_rest: number
  revision: number
  baseline: number
  first_seen: number
  read_at: number
  deleted_at: number | null
}

/** JSON that we wrote ourselves. */
export function objectOf(text: string): JsonObject {
  return parseJson(text, PASSED_ON) as JsonObject
}
