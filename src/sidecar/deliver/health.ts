import { backoff } from '../../std/backoff.ts'
import type { HandlerStatus } from '../../core/handler.ts'
import type { HandlerState, Observer } from '../../core/observer.ts'
import type { Clock, Log, Random } from '../../std/ports.ts'
import type { Verdict } from './targets/verdict.ts'

/** Backoff between the probes of a handler that is down, milliseconds. */
const PROBE = { base: 1000, max: 30_000 }
/** The most deliveries whose connection reset is remembered. */
const RESETS_REMEMBERED = 1000

/** The pause of a handler: an operator paused it, or it answered 410. */
export interface Pause {
  /** Milliseconds, our wall clock. */
  since: number
  reason: string | null
}

type Answered = Exclude<Verdict, { kind: 'aborted' }>

/**
 * The state of a handler. A handler that cannot be reached is down: its deliveries stay in the store, one probe at a
 * time is sent, and no attempt counts.
 */
export class HandlerHealth {
  readonly #options: { observer: Observer; clock: Clock; random: Random; log: Log }
  /** When the last attempt of a delivery ended in a reset (steady milliseconds), by the position of its fact. */
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

  /** Restores the pause that was stored before the restart. */
  stayPaused({ since, reason }: Pause): void {
    const { name } = this.#status
    this.#status = { name, state: 'paused', since, lastError: reason }
    this.#options.log.warn(
      { handler: name, reason, since: new Date(since).toISOString() },
      'handler: it was paused before this start; its deliveries wait until it is resumed',
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

  /** Records that the handler answered, with any status. @returns true when it was down. */
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

  /**
   * A fact may crash the handler each time, while the handler answers other deliveries: a poison event. At its second
   * reset, if another delivery was answered since the first, the attempt counts as failed, and the handler stays up.
   */
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
