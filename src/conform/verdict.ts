import { asCurl, cutTo, requestId, type Reply } from './reply.ts'
import type { Rule } from './catalogue.ts'

/**
 * The verdict on a rule. `open`: the interface leaves the detail open, and the verdict describes how the deployment
 * behaves.
 */
export type State = 'holds' | 'differs' | 'open' | 'not tried'

interface Difference {
  readonly expected: string
  readonly seen: string
  readonly request_id: string | null
  /** The request to repeat, without the token; null when no single request shows it. */
  readonly curl: string | null
}

export interface Verdict {
  readonly id: string
  readonly text: string
  readonly state: State
  /** For `open`: the behaviour of the deployment. For `not tried`: the reason. */
  readonly note: string | null
  /** The check that saw it. */
  readonly check: string | null
  readonly difference: Difference | null
}

interface Entry {
  state: State
  note: string | null
  check: string | null
  difference: Difference | null
}

/** Several checks may have a verdict on one rule: the one with the highest weight counts. */
const WEIGHT: Readonly<Record<State, number>> = { differs: 3, holds: 2, open: 1, 'not tried': 0 }

/** Collects the results of the checks. The first difference that was found for a rule is final. */
export class Verdicts {
  readonly #entries = new Map<string, Entry>()
  readonly #token: string

  /** `token` is replaced in every verdict, even if the deployment sent it back. */
  constructor(token: string) {
    this.#token = token
  }

  hold(id: string, check: string): void {
    this.#put(id, { state: 'holds', note: null, check, difference: null })
  }

  differ(id: string, check: string, expected: string, seen: string, reply: Reply | null): void {
    const difference = {
      expected,
      seen: cutTo(this.#redact(seen), 300),
      request_id: reply === null ? null : requestId(reply),
      curl: reply === null ? null : this.#redact(asCurl(reply.sent)),
    }
    this.#put(id, { state: 'differs', note: null, check, difference })
  }

  describe(id: string, check: string, note: string): void {
    this.#put(id, { state: 'open', note, check, difference: null })
  }

  leave(id: string, check: string | null, why: string): void {
    this.#put(id, { state: 'not tried', note: why, check, difference: null })
  }

  /** True once a check recorded a result for the rule. */
  settled(id: string): boolean {
    return (this.#entries.get(id)?.state ?? 'not tried') !== 'not tried'
  }

  of(rule: Rule): Verdict {
    const entry = this.#entries.get(rule.id)
    const { id, text } = rule
    if (entry !== undefined) return { id, text, ...entry }
    return { id, text, state: 'not tried', note: 'it was not checked', check: null, difference: null }
  }

  #redact(text: string): string {
    return text.replaceAll(this.#token, () => '$TOKEN')
  }

  #put(id: string, entry: Entry): void {
    const before = this.#entries.get(id)
    if (before === undefined || WEIGHT[entry.state] > WEIGHT[before.state]) this.#entries.set(id, entry)
  }
}
