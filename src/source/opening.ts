import { ServiceError } from '../core/errors.ts'
import type { Clock, Log, Service } from '../core/ports.ts'
import { isBefore } from '../core/seq.ts'
import type { Batch, Store } from '../core/store.ts'
import { createBatcher, type Pending } from './batch.ts'
import { STREAM_OPENED } from './cursor.ts'

/** A replay comes without pause; after one so long, what comes is live. Milliseconds. */
const LULL = 1000
/**
 * What we know of the service's clock may be wrong by so much, milliseconds: its answers name whole seconds. What is told
 * though it is a moment older does no harm; what is missed is lost.
 */
const UNSURE = 1500
/** Before a time by our own clock: the service had not told us its own yet. By the time it is needed, it has. */
const OURS = 'ours '
/** Sessions that are looked up to find where the news begins. */
const LOOKED_UP = 500

/**
 * With `start_from: now` there is no cursor until the first frame is stored. When the connection, or we, went down before
 * that, what came in between is only in a replay from the very beginning. Seqs ascend over all sessions, so the news
 * begins with the first frame of a session that was made after we had started.
 */
export interface Opening {
  /** What of a batch is news. */
  sift(batch: readonly Pending[]): Promise<readonly Pending[]>
}

interface OpeningPorts {
  service: Service
  commit: (batch: Batch) => Promise<unknown>
  store: Store
  clock: Clock
  log: Log
}

/** null on the very first connection: it gives live frames only. */
export async function findOpening(ports: OpeningPorts): Promise<Opening | null> {
  const opened = await ports.store.checkpoint(STREAM_OPENED)
  if (opened !== null) return createOpening(ports, opened)
  await noteOpening(ports)
  return null
}

/** From now on what comes is news. Noted before the first connection, lest it fails, and once more when it is there. */
export async function noteOpening({ store, service, clock }: OpeningPorts): Promise<void> {
  const at = String(clock.now() + service.clockOffset() - UNSURE)
  await store.setCheckpoint(STREAM_OPENED, service.clockKnown() ? at : `${OURS}${at}`)
}

/** `opened`: as it was noted. */
function createOpening({ service, commit, clock, log }: OpeningPorts, opened: string): Opening {
  const batchOf = createBatcher()
  const isNew = new Map<string, boolean>()
  /** Steady milliseconds; null before the replay has begun, which may take as long as it likes. */
  let lastAt: number | null = null
  let found = false
  let tooLong = false
  /** The highest seq that was no news. */
  let past: string | null = null

  const isPast = (seq: string | null): boolean => seq !== null && past !== null && !isBefore(past, seq)

  const look = async (sessionId: string): Promise<boolean> => {
    const known = isNew.get(sessionId)
    if (known !== undefined) return known
    if (isNew.size >= LOOKED_UP) {
      if (!tooLong) log.warn({}, 'stream: the replay is too long to find where the news begins')
      tooLong = true
      return false
    }
    const answer = await wasMadeSince(sessionId)
    isNew.set(sessionId, answer)
    return answer
  }

  /** Service clock, milliseconds. */
  const since = (): number =>
    opened.startsWith(OURS) ? Number(opened.slice(OURS.length)) + service.clockOffset() : Number(opened)

  const wasMadeSince = async (sessionId: string): Promise<boolean> => {
    try {
      return ((await service.readSession(sessionId)).createdAt ?? 0) > since()
    } catch (error) {
      if (error instanceof ServiceError && error.notFound) return false
      throw error
    }
  }

  /** Where the news begins in `batch`; its length when it is not in it. */
  const beginIn = async (batch: readonly Pending[]): Promise<number> => {
    for (const [index, { meaning }] of batch.entries()) {
      const sessionId = meaning.kind === 'fact' ? meaning.fact.sessionId : null
      if (sessionId !== null && (await look(sessionId))) return index
    }
    return batch.length
  }

  /**
   * Frames that follow the replay at once look like it, and nobody else may ever notice a session that is gone: what is
   * not stored makes us look all the same.
   */
  const letGo = async (frames: readonly Pending[]): Promise<void> => {
    for (const { meaning } of frames) if (meaning.seq !== null && !isPast(meaning.seq)) past = meaning.seq
    const { hints = [] } = batchOf(
      frames.filter(({ meaning }) => meaning.kind === 'fact' && isNew.has(meaning.fact.sessionId ?? '')),
    )
    if (hints.length > 0) await commit({ hints })
  }

  return {
    async sift(batch) {
      const now = clock.steady()
      found ||= lastAt !== null && now - lastAt > LULL
      lastAt = now
      const begin = found ? 0 : await beginIn(batch)
      found ||= begin < batch.length
      await letGo(batch.slice(0, begin))
      lastAt = clock.steady()
      // A service may repeat itself: what was no news before is none after it, either.
      return batch.slice(begin).filter(({ meaning }) => !isPast(meaning.seq))
    },
  }
}
