import { isParticular, ServiceError } from '../../core/errors.ts'
import { messageOf } from '../../std/errors.ts'
import type { Clock, Log } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import { isBefore } from '../../core/seq.ts'
import type { Batch, Store } from '../../core/store.ts'
import { createBatcher, type Pending } from './batch.ts'
import { STREAM_OPENED } from './cursor.ts'

/** The service pings every 15 s, also in a replay: so many without a frame between, and it has nothing more to tell. */
const IDLE_PINGS = 2
/**
 * The service's clock may be earlier than we know by so much, milliseconds: its answers name whole seconds. What is told
 * though it is a moment older does no harm; what is missed is lost.
 */
const UNSURE = 2000
/** Answers that leave more than this open of the service's clock are not the last word on when we began, milliseconds. */
const VAGUE = 2000
/** How often we try to look a session up that cannot be read, before the others go on without it. */
const PATIENCE = 3
/** Sessions that are looked up to find where the news begins. */
const LOOKED_UP = 500

/**
 * With `start_from: now` there is no cursor until the first frame is stored. When the connection, or we, went down before
 * that, what came in between is only in a replay from the very beginning. Seqs ascend over all sessions, so the news
 * begins with the first frame of a session that was made after we had started, and at the latest where the replay is over:
 * transient frames are not replayed (rule EVT-18). How long something takes says nothing: we, the network
 * or the service may stand still.
 */
export interface Opening {
  /** A persisted frame came; it is in a batch to come. */
  came(seq: string | null): void
  /** A transient frame came: what came before it may be old, what comes after it is not. */
  transient(sessionId: string | null): void
  ping(): void
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

/** Notes when we first asked for the stream without a cursor, by the service's clock. */
export interface Openings {
  /** Before a connection without a cursor. null for the very first: it gives live frames only. */
  find(): Promise<Opening | null>
  /** The connection is there. */
  connected(opening: Opening | null): Promise<void>
  /** There was a cursor, and it is lost: what comes from the next connection on is news. */
  forget(): void
}

/** By session, over all connections: a replay of three windows reads each old session once, not three times. */
interface LookedUp {
  /** When a session was made, by the service's clock, milliseconds. */
  madeAt: Map<string, number>
  /** How often a session could not be read. */
  failures: Map<string, number>
}

export function createOpenings(ports: OpeningPorts): Openings {
  const { store, service, clock } = ports
  /** Steady milliseconds: when this process first asked. */
  let askedAt: number | null = null
  /** What is noted, when it is by a clock that the service had told well. */
  let certain: number | null = null
  const lookedUp: LookedUp = { madeAt: new Map(), failures: new Map() }

  const note = async (steady: number): Promise<number> => {
    const open = service.clockOpen()
    const at = timeThere(ports, steady)
    await store.settings.setCheckpoint(STREAM_OPENED, String(at))
    certain = open <= VAGUE ? at : null
    return at
  }

  return {
    async find() {
      const opened = await store.settings.checkpoint(STREAM_OPENED)
      if (opened !== null && (askedAt === null || certain !== null))
        return createOpening(ports, lookedUp, async () => Number(opened))
      const first = askedAt === null
      const at = (askedAt ??= clock.steady())
      // Lest the connection fails. A wall clock may be wrong by hours, and be set right after a crash: a process that
      // never heard of the service has not begun.
      if (service.clockOpen() < Infinity) await note(at)
      return first ? null : createOpening(ports, lookedUp, async () => certain ?? (await note(at)))
    },
    async connected(opening) {
      // It may have been long in coming, and gives live frames only.
      if (opening === null) askedAt = clock.steady()
      if (askedAt !== null && (opening === null || certain === null)) await note(askedAt)
    },
    forget() {
      askedAt = null
      certain = null
    },
  }
}

/** The service's clock at `steady`, milliseconds, or a moment before: it is not known better. */
function timeThere({ service, clock }: Pick<OpeningPorts, 'service' | 'clock'>, steady: number): number {
  return Math.round(clock.now() + service.clockOffset() - (clock.steady() - steady)) - UNSURE
}

/** `since`: service clock, milliseconds. */
function createOpening(
  ports: OpeningPorts,
  { madeAt, failures }: LookedUp,
  since: () => Promise<number>,
): Opening {
  const { service, commit, log } = ports
  const batchOf = createBatcher()
  const isNew = new Map<string, boolean>()
  /** The highest seq that came. */
  let latest: string | null = null
  /** Pings since the last frame. */
  let pings = 0
  /** The replay is over, and `latest` was its last seq; null: it was empty. */
  let replayed: { upTo: string | null } | null = null
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

  const wasMadeSince = async (sessionId: string): Promise<boolean> => {
    try {
      const made = madeAt.get(sessionId) ?? (await service.readSession(sessionId)).createdAt ?? 0
      if (madeAt.size < LOOKED_UP) madeAt.set(sessionId, made)
      // An answer of the service gives its time as well.
      return made > (await since())
    } catch (error) {
      if (error instanceof ServiceError && error.notFound) return false
      const times = (failures.get(sessionId) ?? 0) + 1
      failures.set(sessionId, times)
      // The replay breaks and comes again: one session does not hold up all others for ever.
      if (times <= PATIENCE || !isParticular(error)) throw error
      log.warn(
        { sessionId, error: messageOf(error) },
        'stream: a session cannot be read, and is taken for old',
      )
      return false
    }
  }

  /** How much of `batch` may belong to the replay. */
  const endIn = (batch: readonly Pending[]): number => {
    if (replayed === null) return batch.length
    const { upTo } = replayed
    const end = batch.findIndex(
      ({ meaning }) => meaning.seq !== null && (upTo === null || isBefore(upTo, meaning.seq)),
    )
    return end === -1 ? batch.length : end
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
    came(seq) {
      pings = 0
      if (seq !== null && (latest === null || isBefore(latest, seq))) latest = seq
    },
    transient(sessionId) {
      // A frame about no session may be the service's way of saying hello.
      if (sessionId !== null) replayed ??= { upTo: latest }
    },
    ping() {
      // Before its first frame a replay may take as long as it likes.
      if (latest !== null && ++pings >= IDLE_PINGS) replayed ??= { upTo: latest }
    },
    async sift(batch) {
      const begin = found ? 0 : await beginIn(batch.slice(0, endIn(batch)))
      found ||= begin < batch.length
      await letGo(batch.slice(0, begin))
      // A service may repeat itself: what was no news before is none after it, either.
      return batch.slice(begin).filter(({ meaning }) => !isPast(meaning.seq))
    },
  }
}
