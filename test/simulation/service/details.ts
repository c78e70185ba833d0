import type { Chance } from '../chance.ts'
import type { Part } from '../edges.ts'

/** What the interface leaves open, as one seed answers it. */
export interface Details {
  ids: 'snake' | 'camel' | 'object'
  idsIn: 'data' | 'payload'
  stopFrame: string
  fromSeqIn: 'data' | 'payload'
  /** The fourth turn status. */
  otherStatus: string
  outcome: string | null
  answerPath: string
  messagePath: string
  message: 'flat' | 'nested'
  turnPath: string | null
  artifactsPath: string | null
  idempotencyHeader: string
  rateHeaders: { remaining: string; bucket: string }
  /** Milliseconds of `retry:`; null: none is sent. */
  retry: number | null
  webhook: 'flat' | 'nested'
  code401: string
  queueFull: number
  artifactTurn: boolean
  /** How far apart seqs are. */
  seqStep: number
  /** No page is longer, whatever is asked for. */
  pageMax: number
  /** Parts of a millisecond that its times have. */
  fraction: number
  /** What its description lacks. It has an idempotency header and rate headers only where they are described. */
  absent: ReadonlySet<Part>
}

export function drawDetails(chance: Chance, absent: readonly Part[] = []): Details {
  return {
    absent: new Set(absent),
    ids: chance.pick(['snake', 'camel', 'object']),
    idsIn: chance.pick(['data', 'payload']),
    stopFrame: chance.pick(['replay.truncated', 'stream.continue']),
    fromSeqIn: chance.pick(['data', 'payload']),
    otherStatus: chance.pick(['canceled', 'interrupted']),
    outcome: chance.pick(['delivered', 'accepted', null]),
    answerPath: chance.pick([
      '/v1/sessions/{session_id}/actions',
      '/v1/sessions/{session_id}/calls/{call_id}/answer',
    ]),
    messagePath: chance.pick(['/v1/sessions/{session_id}/input', '/v1/sessions/{session_id}/messages']),
    message: chance.pick(['flat', 'nested']),
    turnPath: chance.pick(['/v1/sessions/{session_id}/turns/{turn_id}', null]),
    artifactsPath: chance.pick(['/v1/sessions/{session_id}/artifacts', null]),
    idempotencyHeader: chance.pick(['Idempotency-Key', 'X-Request-Key']),
    rateHeaders: chance.pick([
      { remaining: 'X-RateLimit-Remaining', bucket: 'X-RateLimit-Bucket' },
      { remaining: 'X-Budget-Left', bucket: 'X-Budget-Bucket' },
    ]),
    retry: chance.pick([2000, 8000, 0, null]),
    webhook: chance.pick(['flat', 'nested']),
    code401: chance.pick(['unauthorized', 'invalid_token']),
    queueFull: chance.pick([409, 429]),
    artifactTurn: chance.is(0.5),
    seqStep: chance.pick([1, 1, 3]),
    pageMax: chance.pick([2, 7, 100]),
    fraction: chance.pick([0, 0, 0, 0.25]),
  }
}
