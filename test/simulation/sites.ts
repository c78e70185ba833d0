import type { Agenda } from './agenda.ts'
import type { Fault, Fired, Plan } from './faults.ts'
import type { Trace } from './trace.ts'

export type When = 'before' | 'after'

/** Every call through a port is a named place with a before and an after, where the plan may let something go wrong. */
export class Sites {
  readonly #agenda: Agenda
  readonly #trace: Trace
  readonly #plan: Plan
  /** Passages so far, by `site when`. */
  readonly passed = new Map<string, number>()
  readonly fired: Fired[] = []
  passages = 0
  /** Nothing goes wrong any more. */
  quiet = false
  onCrash: () => void = () => undefined

  constructor(agenda: Agenda, trace: Trace, plan: Plan) {
    this.#agenda = agenda
    this.#trace = trace
    this.#plan = plan
  }

  pass(site: string, when: When, possible: readonly Fault[], detail = ''): Fault | null {
    this.passages++
    const key = `${site} ${when}`
    this.passed.set(key, (this.passed.get(key) ?? 0) + 1)
    this.#trace.note(this.#agenda.now, key, detail)
    const fault = this.quiet ? null : this.#plan.decide(this.passages, site, when, possible)
    if (fault === null) return null
    this.fired.push({ passage: this.passages, site, when, fault })
    this.#trace.note(this.#agenda.now, `!! ${fault}`, key)
    if (fault === 'crash') this.onCrash()
    return fault
  }

  /** True when the process crashed here. */
  crashes(site: string, when: When, detail = ''): boolean {
    return this.pass(site, when, CRASH, detail) === 'crash'
  }
}

const CRASH: readonly Fault[] = ['crash']
