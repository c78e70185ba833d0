import { compilePatterns } from '../../../src/core/pattern.ts'
import { deliveries, statusOf } from '../../checker/deliveries.ts'
import { firstFault, type Fault, type Receipt } from '../../checker/history.ts'
import { ATTEMPTS } from '../sidecar.ts'
import type { Simulation } from '../simulation.ts'

interface DeliveryRow {
  id: string
  type: string
  handler: string
  status: number | null
  attempts: number | null
}

/** Every fact ends delivered, as its handler says too, or dead for a reason. */
export function deliveryFaults(simulation: Simulation): Fault | null {
  return faultsOf(simulation, true)
}

/** The same while deliveries may still be pending. */
export function deliveredFaults(simulation: Simulation): Fault | null {
  return faultsOf(simulation, false)
}

function faultsOf({ db, scenario, watch }: Simulation, idle: boolean): Fault | null {
  const wanted = new Map(scenario.handlers.map(({ name, events }) => [name, compilePatterns(events)]))
  const rows = db
    .prepare<[], DeliveryRow>(
      `SELECT f.id, f.type, h.name AS handler, d.status, d.attempts FROM all_facts f CROSS JOIN handlers h
       LEFT JOIN all_deliveries d ON d.fact_pos = f.pos AND d.handler = h.number`,
    )
    .all()
    .filter(({ handler, type }) => wanted.get(handler)?.wants(type) === true)
  const attempts = new Map(rows.map(({ handler, id, attempts }) => [`${handler} ${id}`, attempts ?? 0]))
  const receiptOf = (handler: string, id: string): Receipt => {
    const receipt = watch.receipt(handler, id)
    const spent = Math.min(attempts.get(`${handler} ${id}`) ?? 0, receipt?.sent ?? 0) >= ATTEMPTS
    return {
      taken: (receipt?.taken ?? 0) > 0,
      heard: handler === 'inside' || (receipt?.heard ?? 0) > 0,
      givenUp: spent || receipt?.verdictDead === true,
    }
  }
  const entries = rows.map(({ status, ...row }) => ({ ...row, status: statusOf(status) }))
  return firstFault(() => deliveries(entries, receiptOf, idle))
}
