import type { Ack } from '../../core/delivery.ts'
import { pause } from '../../std/pause.ts'
import { createThrottledLog } from '../../std/throttled-log.ts'
import type { Clock, Log } from '../../std/ports.ts'
import type { Store } from '../../core/store.ts'

/** An ack waits so long to share a commit with others, milliseconds. A crash in between repeats the callback under its id. */
const PATIENCE = 50
/** What the store refused is written again so much later, milliseconds. */
const AGAIN = 1000

/** Who waits for an ack to be durable. */
export interface AckOwner {
  /** Called once for each ack: it is durable, or we stop and it could not be written. */
  acknowledged(): void
}

/**
 * Writes the outcomes of attempts, many in one commit, in the order in which they became known. A disk without room: the
 * acks are kept and written when it takes them, and no callback goes out meanwhile, since its outcome could not be stored.
 */
export interface AckBatcher {
  add(ack: Ack, owner: AckOwner): void
  /** The store refuses what we write. */
  readonly refused: boolean
  /** Calls `run` once when the store accepts again, or when we stop. */
  onceAccepted(run: () => void): void
  /** What could not be written is tried once more: else it is delivered again, under its id, after a start. */
  stop(): void
}

interface Batch {
  acks: Ack[]
  owners: AckOwner[]
}

export function createAckBatcher(store: Pick<Store, 'log'>, clock: Clock, log: Log): AckBatcher {
  let open: Batch = { acks: [], owners: [] }
  let writing = false
  const stopping = new AbortController()
  let refused = false
  let waiting: (() => void)[] = []

  /** One commit at a time, so that a later one never overtakes one that is refused. */
  const write = async (): Promise<void> => {
    writing = true
    while (open.acks.length > 0) {
      const batch = open
      await put(batch)
      for (const owner of batch.owners) owner.acknowledged()
    }
    writing = false
  }

  const put = async (batch: Batch): Promise<void> => {
    /** What comes from here on is the next batch's. */
    const take = (): readonly Ack[] => {
      if (open === batch) open = { acks: [], owners: [] }
      return batch.acks
    }
    for (;;) {
      const last = stopping.signal.aborted
      try {
        await store.log.commit({ acks: take }, last ? 0 : PATIENCE)
        return accepted()
      } catch (error) {
        take()
        report({ err: error, attempts: batch.acks.length })
        if (last) return accepted()
        refused = true
        await pause(clock, AGAIN, stopping.signal)
      }
    }
  }

  const accepted = (): void => {
    refused = false
    const ready = waiting
    waiting = []
    for (const run of ready) run()
  }

  const report = createThrottledLog<{ err: unknown; attempts: number }>(clock, (_times, refusal) =>
    log.error(
      refusal,
      'deliver: the outcomes of attempts cannot be stored; no delivery begins until they can',
    ),
  )

  return {
    add(ack, owner) {
      open.acks.push(ack)
      open.owners.push(owner)
      if (!writing) void write()
    },
    get refused() {
      return refused
    },
    onceAccepted(run) {
      if (refused) waiting.push(run)
      else run()
    },
    stop: () => stopping.abort(),
  }
}
