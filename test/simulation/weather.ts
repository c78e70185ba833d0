import { Chance } from './chance.ts'
import { closeDisk, fillDisk, emptyDisk } from './database.ts'
import type { Fault } from './faults.ts'
import type { SharedStore } from './replicas.ts'
import type { Simulation } from './simulation.ts'

/** Of one of several processes, milliseconds. */
const PARTED = [500, 5000, 14_000, 30_000]
/** By which the clock of the database is set, milliseconds. */
const STEPS = [-3_600_000, -20_000, 20_000, 3_600_000]
const FROZEN = [1000, 8000, 13_000, 17_000, 40_000, 120_000]

/** What befalls the whole house, and how it is repaired. Asked every half second, true time. */
export class Weather {
  readonly #simulation: Simulation
  readonly #chance: Chance
  readonly #kinds: Partial<Record<Fault, () => void>>

  constructor(simulation: Simulation) {
    const { network, host, db, webhooks } = simulation
    this.#simulation = simulation
    this.#chance = new Chance(simulation.seed, 'weather')
    // Webhooks carry the service's time: beyond five minutes they are refused, as they should be.
    const jump = simulation.scenario.channels.webhook ? 90_000 : 3_600_000
    this.#kinds = {
      crash: () => undefined,
      service_unreachable: () => {
        network.partition()
        this.#later(() => (network.serviceUnreachable = false))
      },
      app_unreachable: () => {
        network.appUnreachable = true
        this.#later(() => (network.appUnreachable = false))
      },
      disk_full: () => {
        fillDisk(db)
        this.#later(() => emptyDisk(db))
      },
      disk_refuses: () => {
        closeDisk(db)
        this.#later(() => emptyDisk(db))
      },
      clock_ahead: () => this.#setClock(jump),
      clock_back: () => this.#setClock(-jump),
      revoked: () => {
        host.accepts = false
        this.#later(() => simulation.newToken())
      },
      restart: () => simulation.restart(),
      unsubscribed: () => {
        // Deleted by a user, or given up by the service.
        if (this.#chance.is(0.5)) webhooks.subscriptions.splice(0)
        for (const subscription of webhooks.subscriptions) subscription.active = false
      },
      ...(simulation.shared === null ? {} : this.#parting(simulation.shared)),
      asleep: () => {
        this.#freeze(60_000)
      },
    }
  }

  /** What parts several processes from one another, and from their store. */
  #parting(shared: SharedStore): Partial<Record<Fault, () => void>> {
    const simulation = this.#simulation
    return {
      partition: () => {
        const { life } = simulation.anyPost()
        if (life?.face === null || life?.face === undefined) return
        life.disturbed = 'alone'
        life.face.cut(this.#chance.pick(PARTED))
      },
      outage: () => {
        shared.outageUntil = simulation.agenda.now + this.#chance.pick(PARTED)
        this.#disturbAll()
      },
      overload: () => {
        shared.overloadUntil = simulation.agenda.now + this.#chance.pick(PARTED)
        this.#disturbAll()
      },
      store_clock: () => void (shared.clockOffset += this.#chance.pick(STEPS)),
      frozen: () => this.#freeze(this.#chance.pick(FROZEN)),
      leaves: () => simulation.restart(simulation.anyPost(), this.#chance.pick(PARTED)),
    }
  }

  #disturbAll(): void {
    for (const { life } of this.#simulation.posts)
      if (life?.disturbed === 'no') life.disturbed = 'by an outage'
  }

  #freeze(ms: number): void {
    const { life } = this.#simulation.anyPost()
    if (life === null) return
    life.disturbed = 'alone'
    // What was put off until it wakes would otherwise come later than what is new.
    life.asleepUntil = Math.max(life.asleepUntil, this.#simulation.agenda.now + ms)
  }

  change(): void {
    const fault = this.#simulation.sites.pass('weather', 'before', Object.keys(this.#kinds) as Fault[])
    if (fault !== null) this.#kinds[fault]?.()
  }

  /** An operator who sets a clock may also restart what runs on the machine. */
  #setClock(offset: number): void {
    const simulation = this.#simulation
    simulation.wall.offset = offset
    if (this.#chance.is(0.5)) simulation.crash()
    this.#later(() => (simulation.wall.offset = 0))
  }

  #later(undo: () => void): void {
    const { agenda, sites } = this.#simulation
    agenda.in(this.#chance.int(300, 6000), () => {
      // Calm has undone it already.
      if (!sites.quiet) undo()
    })
  }
}
