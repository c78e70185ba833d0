import { fillDisk, emptyDisk } from './database.ts'
import type { Fault } from './faults.ts'
import type { Simulation } from './simulation.ts'

const KINDS: readonly Fault[] = [
  'crash',
  'service_away',
  'app_away',
  'disk_full',
  'clock_ahead',
  'clock_back',
  'revoked',
  'restart',
  'unsubscribed',
  'asleep',
]

/** What befalls the whole house. Asked every half second, true time. */
export function weather(simulation: Simulation, chance: { int(least: number, most: number): number }): void {
  const { agenda, sites, network, host, wall, scenario } = simulation
  const later = (undo: () => void): void => {
    agenda.in(chance.int(300, 6000), () => {
      // Calm has mended it already.
      if (!sites.quiet) undo()
    })
  }
  const jump = (sign: number): void => {
    // Webhooks carry the service's time: beyond five minutes they are refused, as they should be.
    wall.offset = sign * (scenario.channels.webhook ? 90_000 : 3_600_000)
    later(() => (wall.offset = 0))
  }
  switch (sites.pass('weather', 'before', KINDS)) {
    case 'service_away':
      network.partition()
      return later(() => (network.serviceAway = false))
    case 'app_away':
      network.appAway = true
      return later(() => (network.appAway = false))
    case 'disk_full':
      fillDisk(simulation.db)
      return later(() => emptyDisk(simulation.db))
    case 'clock_ahead':
      return jump(1)
    case 'clock_back':
      return jump(-1)
    case 'revoked':
      host.accepts = false
      return later(() => simulation.newToken())
    case 'restart':
      return simulation.restart()
    case 'unsubscribed':
      simulation.webhooks.subscriptions.splice(0)
      return
    case 'asleep':
      if (simulation.life !== null) simulation.life.asleepUntil = agenda.now + 60_000
      return
    default:
  }
}
