import { endInterrupted } from '../agent.ts'
import { resumeCollection } from '../collect.ts'
import { newRun } from '../run.ts'
import type { Session } from '../session.ts'
import type { Turn } from '../turn.ts'
import type { World } from '../world.ts'
import type { DataFile } from './file.ts'
import { keptLedger } from './ledger.ts'
import { keptResources } from './resources.ts'
import type { Kept } from './shelf.ts'
import { keptSessions, type Interrupted } from './sessions.ts'

/** Some changes cause no answer, frame or delivery: they are written at this interval, in real milliseconds. */
const TICK_MS = 100
/** A smaller difference of the clocks does not count as a moved clock, milliseconds. */
const CLOCK_SLACK_MS = 50

/**
 * Keeps the data file of an emulator up to date. The file is written before any answer, frame or
 * delivery is sent, in one transaction, so that a killed process has sent nothing that the file
 * lacks. Not stored: faults, rate budgets, open streams.
 */
export class Keeper {
  readonly #file: DataFile
  readonly #world: World
  readonly #kept: readonly Kept[]
  readonly #tick: NodeJS.Timeout
  #offset = Number.NaN
  #failure: unknown
  #closed = false

  /**
   * Loads the file, and ends the work that the stop interrupted. @throws {DataFileError} when the
   * file has invalid content.
   */
  constructor(file: DataFile, world: World) {
    this.#file = file
    this.#world = world
    const interrupted: Interrupted[] = []
    this.#kept = [...keptResources(world), ...keptLedger(world), ...keptSessions(file, world, interrupted)]
    try {
      // Every emulator starts with a model connection. A file contains it, too, unless it was removed: so the one in
      // memory is dropped before the file is loaded.
      if (!file.fresh) world.models.clear()
      for (const kept of this.#kept) kept.load(file)
      file.sweep()
      goOn(world, interrupted)
      this.save()
    } catch (error) {
      file.close()
      throw error
    }
    this.#tick = setInterval(() => this.save(), TICK_MS)
    this.#tick.unref()
  }

  /** @throws {DataFileError} when the file cannot be written; later calls throw it too. */
  save(): void {
    if (this.#closed) return
    if (this.#failure !== undefined) throw this.#failure
    const changes = this.#kept.flatMap((kept) => kept.changes())
    const now = this.#world.clock.now()
    const offset = now - Date.now()
    const moved = !(Math.abs(offset - this.#offset) < CLOCK_SLACK_MS)
    if (changes.length === 0 && !moved) return
    try {
      this.#file.commit(changes, { clock_now: String(now), clock_offset: String(offset) })
      this.#offset = offset
    } catch (error) {
      this.#failure = error
      throw error
    }
  }

  close(): void {
    clearInterval(this.#tick)
    try {
      // If a save failed before, its failure was reported then.
      if (this.#failure === undefined) this.save()
    } finally {
      this.#closed = true
      this.#file.close()
    }
  }
}

/** The time at the start: the time in the file, plus the time since the last stop. It never moves back. */
export function timeOf(file: DataFile): number | undefined {
  const [now, offset] = [file.fact('clock_now'), file.fact('clock_offset')]
  return now === undefined ? undefined : Math.max(Number(now), Date.now() + Number(offset))
}

function goOn(world: World, interrupted: readonly Interrupted[]): void {
  for (const session of world.sessions.live()) {
    for (const turn of session.turns.filter(({ artifacts }) => artifacts === 'pending'))
      resumeCollection(world, session, turn, null)
  }
  for (const { session, turnId, collectMs } of interrupted)
    endInterrupted(world, session, { ...newRun(''), turn: turnOf(session, turnId), collectMs })
  world.webhooks.resume(world.ledger.deliveries.all())
}

function turnOf(session: Session, id: string | null): Turn | null {
  return session.turns.find((turn) => turn.id === id) ?? null
}
