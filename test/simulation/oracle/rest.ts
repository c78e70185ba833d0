import type { Simulation } from '../simulation.ts'
import { callFaults } from './calls.ts'
import { deliveryFaults } from './deliveries.ts'
import { factFaults } from './facts.ts'
import { knowledgeFaults } from './knowledge.ts'
import { metricFaults } from './metrics.ts'

export interface Fault {
  invariant: string
  message: string
}

/** The first thing that is not as it must be at rest; null when all is whole. */
export function unsettled(simulation: Simulation): Fault | null {
  if (simulation.agent.underWay > 0) return { invariant: 'model', message: 'the agent still works' }
  if (simulation.life === null) return { invariant: 'liveness', message: 'the sidecar is down' }
  for (const find of [knowledgeFaults, callFaults, factFaults, deliveryFaults, metricFaults]) {
    const fault = find(simulation)
    if (fault !== null) return fault
  }
  return null
}
