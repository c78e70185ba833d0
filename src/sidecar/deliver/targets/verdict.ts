import type { Attempt } from '../../../core/delivery.ts'
import type { HttpReply } from '../../../std/ports.ts'
import { retryAfter } from '../../../std/retry-after.ts'
import { excerptOf } from './excerpt.ts'

/** The outcome of one attempt. */
export type Verdict =
  | { kind: 'delivered'; status: number }
  /** The retry policy decides about the next attempt. `floor`: the shortest wait, milliseconds, from `Retry-After`. */
  | { kind: 'retry'; status?: number; error?: string; answer?: string; floor: number }
  | { kind: 'dead'; status?: number; error: string; answer?: string }
  /** The handler cannot be reached: it is down, and nothing counts. */
  | { kind: 'unreachable'; error: string; reset: boolean }
  /** 410: the handler asks for a pause. */
  | { kind: 'gone'; status: number; answer?: string }
  /** The sidecar is stopping: the attempt does not count. */
  | { kind: 'aborted' }

/** The error, for people; null when the attempt succeeded. */
export function faultOf(verdict: Verdict): string | null {
  if (verdict.kind === 'delivered') return null
  if (verdict.kind === 'aborted') return 'the sidecar stopped'
  const { error, status } = { error: undefined, status: undefined, ...verdict }
  return error ?? `status ${status}`
}

/** Reads the answer of an HTTP handler (src/sidecar/README.md, Callbacks). */
export function readAnswer(reply: Answer, now: number): Verdict {
  const { status } = reply
  const verdict = status >= 200 && status < 300 ? verdictOf(reply, now) : failureOf(reply, now)
  if (verdict.kind === 'delivered') return verdict
  const answer = excerptOf(reply.body)
  return answer === '' ? verdict : { ...verdict, answer }
}

/** The outcomes that an answer of the handler can have. */
type AnsweredVerdict = Exclude<Verdict, { kind: 'unreachable' | 'aborted' }>

/** Nearly every answer has only a status: its headers are read only if they matter. */
type Answer = Pick<HttpReply, 'status' | 'headers' | 'body'>

function failureOf({ status, headers }: Answer, now: number): AnsweredVerdict {
  if (status === 410) return { kind: 'gone', status }
  const error = status >= 300 && status < 400 ? 'a redirect, which is never followed' : undefined
  const floor = retryAfter(headers['retry-after'], now) ?? 0
  return error === undefined ? { kind: 'retry', status, floor } : { kind: 'retry', status, error, floor }
}

/** Some frameworks write a byte order mark before their JSON. */
const BYTE_ORDER_MARK = /^\uFEFF/

function verdictOf(reply: Answer, now: number): AnsweredVerdict {
  const { status, body } = reply
  // Nearly every answer is empty, or has no verdict.
  if (body.length < 16 || !body.includes('"verdict"')) return { kind: 'delivered', status }
  let value: unknown
  try {
    value = JSON.parse(body.replace(BYTE_ORDER_MARK, ''))
  } catch {
    return { kind: 'delivered', status }
  }
  const verdict =
    typeof value === 'object' && value !== null && 'verdict' in value ? value.verdict : undefined
  if (verdict === 'retry') {
    return {
      kind: 'retry',
      status,
      error: 'verdict retry',
      floor: retryAfter(reply.headers['retry-after'], now) ?? 0,
    }
  }
  if (verdict === 'dead') return { kind: 'dead', status, error: 'verdict dead' }
  return { kind: 'delivered', status }
}

/** The part of a verdict that the log of attempts keeps. */
export function attemptOf(verdict: Exclude<Verdict, { kind: 'aborted' }>, at: number, ms: number): Attempt {
  const attempt: Attempt = { at, ms }
  if ('status' in verdict && verdict.status !== undefined) attempt.status = verdict.status
  if ('error' in verdict && verdict.error !== undefined) attempt.error = verdict.error.slice(0, ERROR_KEPT)
  if ('answer' in verdict && verdict.answer !== undefined) attempt.answer = verdict.answer
  if (attempt.status === undefined && attempt.error === undefined) attempt.error = 'failed'
  return attempt
}

/** Characters of an error message in the log of attempts. */
const ERROR_KEPT = 300
