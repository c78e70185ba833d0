import type { Life } from '../life.ts'
import type { Simulation } from '../simulation.ts'
import type { Fault } from '../../checker/history.ts'

/** A replay once counted a delivery that was pending: its lane was asked for without end, and had nothing. */
const MISCOUNTED = `SELECT l.key FROM lanes l
  WHERE l.pending <> (SELECT count(*) FROM deliveries d WHERE d.lane = l.id AND d.status = 0)`

/** I11: when idle, only the resources of a sidecar without work are held. */
export function leftovers(simulation: Simulation): Fault | null {
  for (const { life } of simulation.posts) {
    const fault = life === null ? null : leftIn(life, simulation)
    if (fault !== null) return fault
  }
  return null
}

function leftIn(life: Life, { scenario, db }: Simulation): Fault | null {
  const broken = (message: string): Fault => ({ invariant: 'I11', message: `when idle ${message}` })
  const { channels, handlers, upkeep } = scenario
  if (life.exchanges > 0) return broken(`${life.exchanges} requests are open`)
  if (life.streams !== (channels.stream && (life.face?.store.shards.leads ?? true) ? 1 : 0))
    return broken(`${life.streams} streams are open`)
  const [claim] = life.claims.open
  if (claim !== undefined) return broken(`${claim} is claimed`)
  const hints = db.prepare<[], number>('SELECT count(*) FROM hints').pluck().get() ?? 0
  if (hints > 0) return broken(`${hints} sessions wait to be read`)
  const begun = db.prepare<[], number>('SELECT count(*) FROM begun').pluck().get() ?? 0
  if (begun > 0) return broken(`${begun} attempts are written down as under way`)
  const miscounted = db.prepare<[], string>(MISCOUNTED).pluck().get()
  if (miscounted !== undefined)
    return broken(`a lane of ${miscounted || 'no session'} counts what is not pending`)
  // The loops of reconciler, tools and handlers; two of polling; the subscription's; the stream's for silence; housekeeping.
  const periodic =
    2 +
    handlers.length +
    (channels.poll ? 2 : 0) +
    (channels.webhook ? 1 : 0) +
    (channels.stream ? 1 : 0) +
    (upkeep === null ? 0 : 1) +
    // Renewal and look.
    (life.face === null ? 0 : 2)
  if (life.timers > periodic) return broken(`${life.timers} timers wait, and ${periodic} are enough`)
  return null
}
