import { Chance } from './chance.ts'
import { PLAIN, type CallPlan, type Scenario, type SessionPlan, type Step } from './scenario.ts'

/** What discovery looks for and a description may lack. */
export const PARTS = ['message', 'answer', 'turn', 'artifacts', 'idempotency header', 'rate headers'] as const
export type Part = (typeof PARTS)[number]

/**
 * How long a call stays listed after its answer was taken, milliseconds. The last is longer than anybody should look: a replica
 * that is frozen and fenced for three minutes, and then the eight looks of the next one.
 */
export const LINGERS = [2000, 20_000, 600_000] as const
/** The shortest deadline of the interface, seconds. */
const SHORTEST = 1
/** More messages than a queue takes. */
const CROWD = 8

/**
 * A scenario at the edges of the interface, in some seeds: a description that lacks what it may lack, the shortest
 * deadlines, full queues, and calls that stay listed although their answers were taken.
 */
export function atEdges(scenario: Scenario, seed: number): Scenario {
  const chance = new Chance(seed, 'edges')
  const absent = chance.is(0.3) ? PARTS.filter(() => chance.is(0.35)) : []
  const short = chance.is(0.2)
  const crowded = chance.is(0.1)
  let lingers = chance.is(0.15) ? chance.pick(LINGERS) : null
  const call = (plan: CallPlan): CallPlan => {
    const timeout = short && chance.is(0.6) ? SHORTEST : plan.timeout
    if (lingers === null || plan.refusesOutput || !plan.held) return { ...plan, timeout }
    const lingering = { ...plan, timeout: null, lingers }
    lingers = null
    return lingering
  }
  const step = (one: Step): Step => (one.do === 'call' ? { do: 'call', calls: one.calls.map(call) } : one)
  const session = (plan: SessionPlan, index: number): SessionPlan => {
    const messages = plan.messages.map(({ at, turn }) => ({
      at,
      turn: { ...turn, steps: turn.steps.map(step) },
    }))
    if (!crowded || index > 0) return { ...plan, messages }
    const crowd = Array.from({ length: CROWD }, () => ({ at: chance.int(0, 600), turn: PLAIN }))
    return { ...plan, messages: [...messages, ...crowd].sort((a, b) => a.at - b.at) }
  }
  return { ...scenario, absent, sessions: scenario.sessions.map(session) }
}
