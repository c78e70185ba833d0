import type { Verdict } from './targets/verdict.ts'

/** The outcome of a test fact at a handler. */
export interface Trial {
  outcome: Verdict['kind']
  status: number | null
  error: string | null
  /** The beginning of its answer, if the attempt failed. */
  answer: string | null
  /** Milliseconds. */
  ms: number
}

export function trialOf(verdict: Verdict, ms: number): Trial {
  return {
    outcome: verdict.kind,
    status: 'status' in verdict ? (verdict.status ?? null) : null,
    error: 'error' in verdict ? (verdict.error ?? null) : null,
    answer: 'answer' in verdict ? (verdict.answer ?? null) : null,
    ms,
  }
}
