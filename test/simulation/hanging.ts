import { Chance } from './chance.ts'
import { PLAIN, type Scenario, type SessionPlan } from './scenario.ts'
import type { Simulation } from './simulation.ts'

/** Seeds with a session whose reads hang. No planted bug and no regression uses one of these seeds. */
const HANGING = { of: 29, rest: 19 }
/** For so long, milliseconds. */
const FOR = [8000, 40_000, 200_000]
/** Without faults, the first look is complete by then, milliseconds. It waits for each session. */
const LOOKED = 3000
/** Sessions beside the one that hangs. */
const OTHERS = 3

export interface HangingPlan {
  /** The number of the session. */
  nth: number
  /** Milliseconds after the beginning. */
  from: number
  /** Milliseconds. */
  ms: number
  /** Nothing else goes wrong: then the other sessions are reported as soon as ever. */
  isAlone: boolean
}

/** In some seeds the service does not answer the reads of one session for a while, and answers all others. */
export function withHangingSession(scenario: Scenario, seed: number): Scenario {
  if (seed % HANGING.of !== HANGING.rest) return scenario
  const chance = new Chance(seed, 'a session that hangs')
  const faultsUntil = Math.max(scenario.faultsUntil, 20_000)
  const others = Array.from({ length: OTHERS }, (): SessionPlan => ({
    at: chance.int(0, faultsUntil - 3000),
    messages: [
      { at: 100, turn: { ...PLAIN, steps: [{ do: 'say' }, { do: 'wait', ms: 500 }, { do: 'say' }] } },
    ],
    deleted: null,
  }))
  const sessions = [...scenario.sessions, ...others]
  const hanging: HangingPlan = {
    nth: chance.int(0, sessions.length - 1),
    from: chance.is(0.3) ? chance.int(0, LOOKED) : chance.int(LOOKED, faultsUntil),
    ms: chance.pick(FOR),
    isAlone: chance.is(0.5),
  }
  return { ...scenario, faultsUntil, sessions, hanging }
}

export function hangSession({ scenario, network, agenda, begin, sites, state }: Simulation): void {
  const { hanging } = scenario
  if (hanging === undefined) return
  agenda.in(begin - agenda.now + hanging.from, () => {
    const id = [...state.sessions.keys()][hanging.nth % Math.max(1, state.sessions.size)]
    if (sites.quiet || id === undefined) return
    network.hanging = id
    network.hung = { id, inFirstLook: hanging.from < LOOKED }
    agenda.in(hanging.ms, () => (network.hanging = null))
  })
}
