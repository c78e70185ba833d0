import type { Settlement } from '../core/delivery.ts'
import { createComplaint } from '../core/complaint.ts'
import type { Clock, Log, Timer } from '../core/ports.ts'
import type { Store } from '../core/store.ts'

/**
 * How long what became of an attempt may wait to share a commit with others, milliseconds. A crash in between costs a
 * repeat under the same id.
 */
const DELAY = 20
/** From so many on they are written at once. */
const ENOUGH = 512
/** What the store refused is tried to be written again so much later, milliseconds. */
const AGAIN = 1000

/**
 * Writes what became of attempts, many in one commit, in the order in which it became known. What the store refuses is
 * kept and written when it takes it: what we know of a delivery never goes back to what we knew before.
 */
export interface Settler {
  /** Settles once it is durable; rejects only when we stop before it could be written. */
  add(settlement: Settlement): Promise<void>
  /** While the store refuses: settles when it takes again what we write, or when we stop. Otherwise null. */
  readonly refused: Promise<void> | null
  /** What could not be written is tried once more and then let go: it is delivered again, under its id, after a start. */
  stop(): void
}

interface Batch {
  settlements: Settlement[]
  written: PromiseWithResolvers<void>
  /** It has waited long enough for others. */
  due: boolean
  timer: Timer | null
}

export function createSettler(store: Pick<Store, 'settle'>, clock: Clock, log: Log): Settler {
  let open: Batch | null = null
  let writing = false
  let stopped = false
  let refused: PromiseWithResolvers<void> | null = null
  let endPause: () => void = () => undefined

  const begin = (): Batch => {
    const batch: Batch = { settlements: [], written: Promise.withResolvers<void>(), due: false, timer: null }
    // Awaited by each lane before it is given back; marked here so that a failure meanwhile does not count as forgotten.
    batch.written.promise.catch(() => undefined)
    batch.timer = clock.after(DELAY, () => close(batch))
    return batch
  }

  const close = (batch: Batch): void => {
    batch.due = true
    batch.timer?.cancel()
    if (!writing) void write()
  }

  /** One commit at a time, so that a later one never overtakes one that is refused. */
  const write = async (): Promise<void> => {
    writing = true
    while (open?.due === true) {
      const batch = open
      open = null
      await put(batch)
    }
    writing = false
  }

  const put = async ({ settlements, written }: Batch): Promise<void> => {
    for (;;) {
      const last = stopped
      try {
        await store.settle(settlements)
        accepted()
        written.resolve()
        return
      } catch (error) {
        if (last) {
          accepted()
          written.reject(error)
          return
        }
        refused ??= Promise.withResolvers<void>()
        tell({ err: error, attempts: settlements.length })
        if (!stopped) await pause()
      }
    }
  }

  const accepted = (): void => {
    refused?.resolve()
    refused = null
  }

  const tell = createComplaint<{ err: unknown; attempts: number }>(clock, (_times, refusal) =>
    log.error(
      refusal,
      'deliver: what became of attempts could not be stored; nothing more is delivered until it can',
    ),
  )

  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      const timer = clock.after(AGAIN, resolve)
      endPause = () => {
        timer.cancel()
        resolve()
      }
    })

  return {
    add(settlement) {
      const batch = (open ??= begin())
      batch.settlements.push(settlement)
      if (batch.settlements.length >= ENOUGH || stopped) close(batch)
      return batch.written.promise
    },
    get refused() {
      return refused?.promise ?? null
    },
    stop() {
      stopped = true
      endPause()
      if (open !== null) close(open)
    },
  }
}
