import { deliveryId } from '../../src/core/delivery.ts'
import type { Chance } from './chance.ts'
import type { Life } from './life.ts'
import type { Act } from './scenario.ts'
import type { Running } from './sidecar.ts'
import type { Simulation } from './simulation.ts'

/** A handler that was paused is resumed so much later, milliseconds. */
const PAUSED = [300, 5000] as const

interface DeliveryRow {
  fact_pos: number
  handler: number
  name: string
}

/** An operator who retries, replays and pauses, through the actions of the admin API. */
export class Operator {
  readonly #simulation: Simulation
  readonly #chance: Chance
  /** Something was delivered again at his wish. */
  redelivered = false

  constructor(simulation: Simulation, chance: Chance) {
    this.#simulation = simulation
    this.#chance = chance
  }

  act(act: Act): void {
    const { sites, scenario, trace, agenda } = this.#simulation
    const { life, running } = this.#simulation.anyPost()
    // A sidecar that is down or starting is unreachable.
    if (life === null || running === null || !life.started || life.stopping || sites.quiet) return
    trace.note(agenda.now, 'operator', act)
    const handler = this.#chance.pick(scenario.handlers).name
    const { admin } = running
    switch (act) {
      case 'retry one':
        return this.#retryOne(life, running)
      case 'retry dead':
        return this.#redeliver(
          life,
          this.#chance.is(0.5) ? admin.retryDeliveries({ handler }) : admin.retryDeliveries({}),
        )
      case 'replay':
        return this.#redeliver(life, admin.replay({ handler, from: this.#start() }))
      case 'pause':
        admin.pauseHandler(handler).catch(() => undefined)
        agenda.in(this.#chance.int(...PAUSED), () => this.#simulation.resume(handler))
    }
  }

  #retryOne(life: Life, { admin }: Running): void {
    const { db } = this.#simulation
    const rows = db
      .prepare<[], DeliveryRow>('SELECT fact_pos, handler FROM deliveries WHERE status <> 0 ORDER BY 1, 2')
      .all()
    if (rows.length === 0) return
    const { fact_pos: pos, handler } = this.#chance.pick(rows)
    this.#redeliver(life, admin.retryDelivery(deliveryId(pos, handler)))
  }

  #start(): { seq: string } | { at: number } {
    const { db } = this.#simulation
    const facts = db
      .prepare<[], { at: number; seq: string | null }>('SELECT at, seq FROM facts ORDER BY pos')
      .all()
    if (facts.length === 0 || this.#chance.is(0.2)) return { at: 0 }
    const { at, seq } = this.#chance.pick(facts)
    return seq === null ? { at } : { seq }
  }

  /** A disk that is full refuses it, a crash of the asked process leaves him without an answer; he may not try again. */
  #redeliver(life: Life, done: Promise<unknown>): void {
    this.redelivered = true
    const { scenario, watch } = this.#simulation
    const over = watch.redeliveries.begin(scenario.handlers.map(({ name }) => name))
    done.then(over, over)
    life.atEnd(over)
  }
}
