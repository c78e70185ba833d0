import { compilePatterns } from '../../../src/core/pattern.ts'
import { ATTEMPTS } from '../sidecar.ts'
import type { Simulation } from '../simulation.ts'
import type { Fault } from './rest.ts'

interface DeliveryRow {
  id: string
  type: string
  handler: string
  status: number | null
  attempts: number | null
}

const [PENDING, DELIVERED, DEAD] = [0, 1, 2]

/** I1 and I10: every fact ends delivered, as its handler says too, or dead for a reason. */
export function deliveryFaults(simulation: Simulation): Fault | null {
  return faultsOf(simulation, true)
}

/** The same while deliveries may still be pending. */
export function deliveredFaults(simulation: Simulation): Fault | null {
  return faultsOf(simulation, false)
}

function faultsOf(simulation: Simulation, atRest: boolean): Fault | null {
  const { db, scenario, watch } = simulation
  const wanted = new Map(scenario.handlers.map(({ name, events }) => [name, compilePatterns(events)]))
  const rows = db
    .prepare<[], DeliveryRow>(
      `SELECT f.id, f.type, h.name AS handler, d.status, d.attempts FROM all_facts f CROSS JOIN handlers h
       LEFT JOIN all_deliveries d ON d.fact_pos = f.pos AND d.handler = h.number`,
    )
    .all()
  for (const { id, type, handler, status, attempts } of rows) {
    if (wanted.get(handler)?.wants(type) !== true) continue
    const what = `${type} ${id} for ${handler}`
    const receipt = watch.receipt(handler, id)
    if (status === null) return { invariant: 'I1', message: `${what} has no delivery` }
    if (status === PENDING && !atRest) continue
    if (status === PENDING) return { invariant: 'I1', message: `${what} is still pending` }
    if (status === DELIVERED && (receipt?.taken ?? 0) === 0)
      return { invariant: 'I1', message: `${what} counts as delivered and was never taken` }
    if (status === DELIVERED && handler !== 'inside' && receipt?.heard === 0)
      return {
        invariant: 'I1',
        message: `${what} counts as delivered and no answer that could be read said so`,
      }
    const spent = (attempts ?? 0) >= ATTEMPTS && (receipt?.sent ?? 0) >= ATTEMPTS
    if (status === DEAD && !spent && receipt?.verdictDead !== true)
      return {
        invariant: 'I10',
        message: `${what} is dead after ${receipt?.sent ?? 0} tries, without a verdict`,
      }
  }
  return null
}
