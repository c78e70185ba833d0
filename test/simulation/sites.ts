import type { Agenda } from './agenda.ts'
import type { Fault, Fired, Plan } from './faults.ts'
import type { Life } from './life.ts'
import type { Trace } from './trace.ts'

export type When = 'before' | 'after'

interface Side {
  /** `site when`. */
  readonly place: string
  passages: number
}

/** The places as one process passes them. */
export type Passages = Pick<Sites, 'pass' | 'crashes'>

/** Every call through a port is a named place with a before and an after, where the plan may let something go wrong. */
export class Sites {
  readonly #agenda: Agenda
  readonly #trace: Trace
  readonly #plan: Plan
  readonly #sides = new Map<string, Record<When, Side>>()
  readonly fired: Fired[] = []
  passages = 0
  /** Nothing goes wrong any more. */
  quiet = false
  /** A second process was started, which cuts the first one short as a crash does. */
  second = false
  /** null: whichever. */
  onCrash: (life: Life | null) => void = () => undefined

  constructor(agenda: Agenda, trace: Trace, plan: Plan) {
    this.#agenda = agenda
    this.#trace = trace
    this.#plan = plan
  }

  /** Of one of several processes, which a crash ends: the others go on. */
  at(life: Life): Passages {
    const pass = (site: string, when: When, possible: readonly Fault[], detail = ''): Fault | null =>
      this.#pass(site, when, possible, { life, detail: `${detail} of ${life.number}` })
    return { pass, crashes: (site, when, detail) => pass(site, when, CRASH, detail) === 'crash' }
  }

  pass(site: string, when: When, possible: readonly Fault[], detail = ''): Fault | null {
    return this.#pass(site, when, possible, { life: null, detail })
  }

  #pass(
    site: string,
    when: When,
    possible: readonly Fault[],
    { life, detail }: { life: Life | null; detail: string },
  ): Fault | null {
    this.passages++
    const side = this.#side(site, when)
    side.passages++
    this.#trace.note(this.#agenda.now, side.place, detail)
    const fault = this.quiet ? null : this.#plan.decide(this.passages, site, when, possible)
    if (fault === null) return null
    this.fired.push({ passage: this.passages, site, when, fault })
    this.#trace.note(this.#agenda.now, `!! ${fault}`, side.place)
    if (fault === 'crash') this.onCrash(life)
    return fault
  }

  #side(site: string, when: When): Side {
    let sides = this.#sides.get(site)
    if (sides === undefined) {
      sides = {
        before: { place: `${site} before`, passages: 0 },
        after: { place: `${site} after`, passages: 0 },
      }
      this.#sides.set(site, sides)
    }
    return sides[when]
  }

  /** Passages so far, by place, such as `store.commit frames before`. */
  get passed(): ReadonlyMap<string, number> {
    const sides = [...this.#sides.values()].flatMap(({ before, after }) => [before, after])
    return new Map(sides.filter(({ passages }) => passages > 0).map((side) => [side.place, side.passages]))
  }

  /** True when the process crashed here. */
  crashes(site: string, when: When, detail = ''): boolean {
    return this.pass(site, when, CRASH, detail) === 'crash'
  }
}

const CRASH: readonly Fault[] = ['crash']
