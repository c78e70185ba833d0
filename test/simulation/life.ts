import type { Metrics } from '../../src/sidecar/admin/metrics.ts'
import type { Owner } from './agenda.ts'
import { Claims } from './claims.ts'
import { newCounts } from './counts.ts'
import { Restraint } from './oracle/restraint.ts'
import type { Disturbed, Face } from './replicas.ts'
import type { Passages } from './sites.ts'

/** One run of the sidecar's process, from its start to its crash or end. What it asks for after that does not happen. */
export class Life implements Owner {
  readonly number: number
  /** True time, milliseconds. */
  readonly startedAt: number
  /** The wall clock at the start: the steady clock counts on from there. */
  readonly startWall: number
  alive = true
  asleepUntil = 0
  /** Sockets and timers that it holds. */
  exchanges = 0
  streams = 0
  timers = 0
  /** What its slowest exchange with the service took, as far as it knows, milliseconds. */
  slowest = 0
  readonly claims = new Claims()
  /**
   * Requests to the service: twice what the busiest of some thousand seeds asked for. Replicas that were all down leave a
   * longer backlog: one process made 201 requests for it, 31 of them because each replay stopped early.
   */
  readonly requests: Restraint
  /** Questions to the store for when there is work: the same. */
  readonly looks = new Restraint(500)
  readonly counts = newCounts()
  /** What Prometheus would read; null in most seeds. */
  metrics: Metrics | null = null
  /** The token that the service rejected to its face. */
  rejectedToken: string | null = null
  /** True time: the reads bucket is closed until then, and it knows. */
  limitedUntil = 0
  /** True time: the directory is unavailable until then, and it knows: it is one for every request. */
  heldUntil = 0
  /** True time: no further stream until then. */
  streamsLimitedUntil = 0
  started = false
  /** A second process was started on its store. Nothing of it leaves the machine any more. */
  replaced = false
  stopping = false
  disturbed: Disturbed = 'no'
  /** Its store, where several processes share one. */
  face: Face | null = null
  /** Where several processes share the places: its own. */
  sites: Passages | null = null
  readonly #atEnd = new Set<() => void>()

  constructor(number: number, now: number, { wall, isReplica }: { wall: number; isReplica: boolean }) {
    this.number = number
    this.requests = new Restraint(isReplica ? 400 : 200)
    this.startedAt = now
    this.startWall = wall
  }

  end(): void {
    this.alive = false
    for (const run of this.#atEnd) run()
  }

  /** Has `run` done when the life is over. */
  atEnd(run: () => void): void {
    this.#atEnd.add(run)
  }

  /** Listens to `signal` until the life is over. @returns how to stop it before. */
  listen(signal: AbortSignal | undefined, onAbort: () => void): () => void {
    if (signal === undefined) return () => undefined
    const stop = (): void => {
      signal.removeEventListener('abort', onAbort)
      this.#atEnd.delete(stop)
    }
    // Node keeps a combined signal as long as it has a listener, and with it all objects of this
    // process.
    signal.addEventListener('abort', onAbort, { once: true })
    this.#atEnd.add(stop)
    return stop
  }
}

/** The promise of a process that is no more. */
export function never(): Promise<never> {
  return new Promise(() => undefined)
}
