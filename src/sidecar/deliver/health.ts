import { backoff } from '../../std/backoff.ts'
import type { HandlerState, Observer } from '../../core/observer.ts'
import type { Clock, Log, Random } from '../../std/ports.ts'
import type { Verdict } from './targets/verdict.ts'

/** A handler that is down is probed so often, milliseconds. */
const PROBE = { base: 1000, max: 30_000 }
/** Deliveries of which we remember that they ended in a reset. */
const RESETS_REMEMBERED = 1000

/** A handler that somebody paused, or that asked for it. */
export interface Pause {
  /** Milliseconds, our wall clock. */
  since: number
  reason: string | null
}

export interface HandlerStatus {
  name: string
  state: HandlerState
  /** Milliseconds, our wall clock. */
  since: number
  lastError: string | null
}

type Answered = Exclude<Verdict, { kind: 'aborted' }>

/**
 * Whether a handler is there. One that cannot be reached is down: its deliveries wait in the store, one probe at a time
 * goes on, and no attempt counts.
 */
export class HandlerHealth {
  readonly #options: { observer: Observer; clock: Clock; random: Random; log: Log }
  /** When a delivery last ended in a reset, by its place in the log. */
  readonly #resets = new Map<number, number>()
  #status: HandlerStatus
  #answeredAt = 0
  #probes = 0
  /** Steady milliseconds. */
  #probeAt = 0

  constructor(name: string, options: { observer: Observer; clock: Clock; random: Random; log: Log }) {
    this.#options = options
    this.#status = { name, state: 'up', since: options.clock.now(), lastError: null }
  }

  /** The pause in which the handler was when we last ran goes on. */
  stayPaused({ since, reason }: Pause): void {
    const { name } = this.#status
    this.#status = { name, state: 'paused', since, lastError: reason }
    this.#options.log.warn(
      { handler: name, reason, since: new Date(since).toISOString() },
      'handler: still paused from before; its deliveries wait until it is resumed',
    )
  }

  get status(): HandlerStatus {
    return this.#status
  }

  get state(): HandlerState {
    return this.#status.state
  }

  get probeAt(): number {
    return this.#status.state === 'down' ? this.#probeAt : 0
  }

  report(): void {
    this.#options.observer.handler(this.#status.name, this.#status.state)
  }

  become(state: HandlerState, lastError: string | null): void {
    const { clock, log } = this.#options
    const { name } = this.#status
    if (state === this.#status.state) this.#status = { ...this.#status, lastError }
    else {
      this.#status = { name, state, since: clock.now(), lastError }
      if (state === 'up') log.info({ handler: name }, 'handler: up')
      else if (state === 'down') {
        log.warn({ handler: name, error: lastError }, 'handler: cannot be reached; its deliveries wait')
      } else log.warn({ handler: name, reason: lastError }, 'handler: paused')
    }
    this.report()
  }

  /** The handler answered, whatever it said. @returns true when it had been down. */
  answered(): boolean {
    this.#answeredAt = this.#options.clock.steady()
    this.#probes = 0
    if (this.#status.state !== 'down') return false
    this.become('up', null)
    return true
  }

  unreachable(error: string | null): void {
    if (this.#status.state === 'paused') return
    const { clock, random } = this.#options
    this.#probes++
    this.#probeAt = clock.steady() + PROBE.base / 2 + backoff(PROBE, this.#probes, random) / 2
    this.become('down', error)
  }

  /** An event that resets the connection while others get through is a poison event, not an outage. */
  weigh(verdict: Answered, pos: number): Answered {
    if (verdict.kind !== 'unreachable' || !verdict.reset) {
      this.#resets.delete(pos)
      return verdict
    }
    const before = this.#resets.get(pos)
    if (before !== undefined && this.#answeredAt > before) {
      this.#resets.delete(pos)
      return { kind: 'retry', error: verdict.error, floor: 0 }
    }
    if (this.#resets.size >= RESETS_REMEMBERED) this.#resets.clear()
    this.#resets.set(pos, this.#options.clock.steady())
    return verdict
  }
}
