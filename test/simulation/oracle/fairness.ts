import type { Simulation } from '../simulation.ts'

/** Between two looks, true time, milliseconds. */
const LOOK = 250
/** The longest that a lane may wait while its handler has a slot: a session that is read, a batch, a refused write. */
const MOST = 20_000
/** Facts that a handler gets at once (sidecar/sidecar.ts). */
const SLOTS = 4

interface LaneRow {
  handler: string
  session: string
}

/** I16: a fact never waits for a transient event, for another session, or for another handler. */
export class Fairness {
  readonly #simulation: Simulation
  readonly #due
  /** Callbacks with facts that are under way, by handler and session. */
  #sent = new Map<string, Map<string, number>>()
  /** Since when a lane waits though nothing keeps it from being delivered, true time. */
  readonly #since = new Map<string, number>()
  #life = 0
  #faults = 0
  #nextLook = 0

  constructor(simulation: Simulation) {
    this.#simulation = simulation
    this.#due = simulation.db.prepare<[number], LaneRow>(
      `SELECT h.name AS handler, l.key AS session FROM lanes l JOIN handlers h ON h.number = l.handler
       WHERE l.pending > 0 AND l.due_at <= ?`,
    )
  }

  /** A callback with facts of `sessions` goes out. */
  sent(life: number, handler: string, sessions: readonly string[]): void {
    if (life !== this.#life) this.#begin(life)
    const lanes = this.#sent.get(handler) ?? new Map<string, number>()
    this.#sent.set(handler, lanes)
    for (const session of sessions) {
      lanes.set(session, (lanes.get(session) ?? 0) + 1)
      this.#since.delete(`${handler} ${session}`)
    }
    if (lanes.size >= SLOTS) this.#forget(handler)
  }

  replied(life: number, handler: string, sessions: readonly string[]): void {
    if (life !== this.#life) return
    const lanes = this.#sent.get(handler)
    for (const session of sessions) {
      const left = (lanes?.get(session) ?? 1) - 1
      if (left === 0) lanes?.delete(session)
      else lanes?.set(session, left)
      this.#since.delete(`${handler} ${session}`)
    }
  }

  #begin(life: number): void {
    this.#life = life
    this.#sent = new Map()
    this.#since.clear()
  }

  #forget(handler: string): void {
    for (const lane of this.#since.keys()) if (lane.startsWith(`${handler} `)) this.#since.delete(lane)
  }

  look(): void {
    const { agenda, life, running, sites, scenario, trace, shared, posts } = this.#simulation
    const { now } = agenda
    if (now < this.#nextLook) return
    this.#nextLook = now + LOOK
    if (shared !== null) {
      for (const { life: one } of posts)
        if (one?.started === true && !one.stopping && one.asleepUntil < now)
          this.#simulation.watch.mayWork(one)
      return
    }
    const { length } = sites.fired
    const idle = life === null || !life.started || life.stopping || life.asleepUntil > now
    // What goes wrong, above all with the disk, may keep anything waiting.
    if (idle || running === null || length > this.#faults) this.#since.clear()
    this.#faults = length
    if (idle || running === null) return
    const steady = life.startWall + (now - life.startedAt)
    const ordered = scenario.handlers.filter(({ kind, ordered: one }) => kind === 'http' && one)
    const up = new Set<string>()
    for (const { name } of ordered) {
      if (running.engine.dispatcher.worker(name)?.status().state === 'up') up.add(name)
      else this.#forget(name)
    }
    const due = new Set<string>()
    for (const { handler, session } of this.#due.all(steady)) {
      const lanes = life.number === this.#life ? this.#sent.get(handler) : undefined
      if (!up.has(handler) || lanes?.has(session) === true || (lanes?.size ?? 0) >= SLOTS) continue
      const lane = `${handler} ${session}`
      due.add(lane)
      const since = this.#since.get(lane) ?? now
      this.#since.set(lane, since)
      if (now - since > MOST)
        trace.broken(
          'I16',
          `${lane.trim()} waits ${Math.round(now - since)} ms though its handler has a free slot`,
        )
    }
    for (const lane of this.#since.keys()) if (!due.has(lane)) this.#since.delete(lane)
  }
}
