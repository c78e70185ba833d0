import type { Simulation } from '../simulation.ts'
import type { Fault } from '../../checker/history.ts'
import { belongingFaults } from './belonging.ts'
import { callFaults, keyFaults } from './calls.ts'
import { deliveredFaults, deliveryFaults } from './deliveries.ts'
import { factFaults, logFaults } from './facts.ts'
import { knowledgeFaults } from './knowledge.ts'
import { leftovers } from './leftovers.ts'
import { metricFaults } from './metrics.ts'
import { secretFaults } from './secrets.ts'

/** Whether anything is plainly under way: cheaper to ask than what is wrong. */
export function busy({ agent, events, posts, underWay }: Simulation): boolean {
  return agent.underWay || events.pauses || posts.some(({ life }) => life === null) || underWay.get() !== 0
}

/** The first violation in the idle state; null when there is none. */
export function unsettled(simulation: Simulation): Fault | null {
  if (simulation.posts.some(({ life }) => life === null))
    return { invariant: 'liveness', message: 'the sidecar is down' }
  for (const find of [
    knowledgeFaults,
    belongingFaults,
    callFaults,
    factFaults,
    deliveryFaults,
    keyFaults,
    metricFaults,
    leftovers,
    secretFaults,
  ]) {
    const fault = find(simulation)
    if (fault !== null) return fault
  }
  // There is no fault, but the agent waits for a person.
  if (simulation.agent.underWay) return { invariant: 'liveness', message: 'the agent still works' }
  return null
}

/** What must hold at any time, and is too dear to look at after each step. */
export function unsound(simulation: Simulation): Fault | null {
  return (
    logFaults(simulation) ?? deliveredFaults(simulation) ?? keyFaults(simulation) ?? secretFaults(simulation)
  )
}
