import type { Ack } from '../../core/delivery.ts'
import { pause } from '../../std/pause.ts'
import { createThrottledLog } from '../../std/throttled-log.ts'
import type { Clock, Log } from '../../std/ports.ts'
import type { Store } from '../../core/store.ts'

/**
 * An ack waits this long to share a commit with others, milliseconds. After a crash in between, the callback is repeated under
 * its id.
 */
const PATIENCE = 50
/** Acks that the store refused are written again after this time, milliseconds. */
const AGAIN = 1000

/** The part that waits until an ack is durable: the lane of the attempt. */
export interface AckOwner {
  /** Called once for each ack: it is durable, or the sidecar stops and the ack could not be written. */
  acknowledged(): void
}

/**
 * Writes the outcomes of attempts, many in one commit, in the order in which they became known. If the disk is full, the acks
 * are kept until they can be written. No callback is sent meanwhile, because its outcome could not be stored.
 */
export interface AckBatcher {
  add(ack: Ack, owner: AckOwner): void
  /** The store refused the last acks, which are written again. */
  readonly refused: boolean
  /** Calls `run` once, when the store accepts writes again or the sidecar stops. */
  onceAccepted(run: () => void): void
  /**
   * Acks that could not be written are tried once more. If that fails, their deliveries are repeated after the next
   * start, under their ids.
   */
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
    /** Acks from here on belong to the next batch. */
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
