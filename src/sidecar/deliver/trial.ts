import type { Trial } from '../../core/handler.ts'
import type { Verdict } from './targets/verdict.ts'

export function trialOf(verdict: Verdict, ms: number): Trial {
  return {
    outcome: verdict.kind,
    status: 'status' in verdict ? (verdict.status ?? null) : null,
    error: 'error' in verdict ? (verdict.error ?? null) : null,
    answer: 'answer' in verdict ? (verdict.answer ?? null) : null,
    ms,
  }
}
