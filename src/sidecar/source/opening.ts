import { isParticular, ServiceError } from '../../core/errors.ts'
import { messageOf } from '../../std/errors.ts'
import type { Clock, Log } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import { isBefore } from '../../core/seq.ts'
import type { Batch, Store } from '../../core/store.ts'
import { createBatcher, type Pending } from './batch.ts'
import { STREAM_OPENED } from './cursor.ts'

/**
 * The service pings every 15 s, also during a replay: after this many pings without a frame between them, the replay is
 * over.
 */
const IDLE_PINGS = 2
/**
 * How far the service's clock may be behind the computed time, milliseconds: its responses state whole seconds. A frame
 * that is stored although it is slightly older does no harm; a missed one is lost.
 */
const UNSURE = 2000
/**
 * When the service's clock is known less exactly than this, a later response replaces the stored start time,
 * milliseconds.
 */
const VAGUE = 2000
/** The most sessions that are read to find the first new frame. */
const LOOKED_UP = 500

/**
 * With `start_from: now` there is no cursor until the first frame is stored. If the connection or the sidecar fails
 * before that, the frames in between are only in a replay from the very beginning. Seqs ascend over all sessions, so
 * the new frames begin with the first frame of a session that was created after our start. They begin at the latest at
 * the end of the replay, which a transient frame shows: none is replayed (rule EVT-18). The duration of a replay shows
 * nothing: the sidecar, the network or the service may pause.
 */
export interface Opening {
  /** A persisted frame arrived; a later batch contains it. */
  came(seq: string | null): void
  /** A transient frame arrived: frames before it may be old, frames after it are new. */
  transient(sessionId: string | null): void
  ping(): void
  /** Returns the new frames of a batch. */
  sift(batch: readonly Pending[]): Promise<readonly Pending[]>
}

interface OpeningPorts {
  service: Service
  commit: (batch: Batch) => Promise<unknown>
  store: Store
  clock: Clock
  log: Log
}

/** Stores when the stream was first requested without a cursor, on the service's clock. */
export interface Openings {
  /** Called before a connection without a cursor. null for the very first one, which sends live frames only. */
  find(): Promise<Opening | null>
  /** Called when the connection is open. */
  connected(opening: Opening | null): Promise<void>
  /** The cursor is lost: all frames from the next connection on are new. */
  forget(): void
}

/**
 * By session, over all connections: a replay that takes three connections reads each old session once, not three times.
 */
interface LookedUp {
  /** When a session was created, on the service's clock, milliseconds. */
  madeAt: Map<string, number>
  /** How often a session could not be read. */
  failures: Map<string, number>
}

export function createOpenings(ports: OpeningPorts): Openings {
  const { store, service, clock } = ports
  /** Steady milliseconds: when this process first requested the stream. */
  let askedAt: number | null = null
  /** The stored time, if the service's clock was known exactly enough; otherwise null. */
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
      // The time is stored before the connection opens, in case that fails. But it is not stored before the first
      // response of the service: until then only our wall clock is known, which may be wrong by hours.
      if (service.clockOpen() < Infinity) await note(at)
      return first ? null : createOpening(ports, lookedUp, async () => certain ?? (await note(at)))
    },
    async connected(opening) {
      // The connection may have taken long to open, and sends live frames only.
      if (opening === null) askedAt = clock.steady()
      if (askedAt !== null && (opening === null || certain === null)) await note(askedAt)
    },
    forget() {
      askedAt = null
      certain = null
    },
  }
}

/** What the service's clock showed at `steady`, milliseconds, or up to UNSURE less. */
function timeThere({ service, clock }: Pick<OpeningPorts, 'service' | 'clock'>, steady: number): number {
  return Math.round(clock.now() + service.clockOffset() - (clock.steady() - steady)) - UNSURE
}

/** `since`: when the stream was first requested, on the service's clock, milliseconds. */
function createOpening(
  ports: OpeningPorts,
  { madeAt, failures }: LookedUp,
  since: () => Promise<number>,
): Opening {
  const { service, commit, log } = ports
  const batchOf = createBatcher()
  const isNew = new Map<string, boolean>()
  /** The highest seq that arrived. */
  let latest: string | null = null
  /** Pings since the last frame. */
  let pings = 0
  /** Set when the replay is over. `upTo`: its last seq; null: it was empty. */
  let replayed: { upTo: string | null } | null = null
  let found = false
  let tooLong = false
  /** The highest seq of an old frame. */
  let past: string | null = null

  const isPast = (seq: string | null): boolean => seq !== null && past !== null && !isBefore(past, seq)

  const look = async (sessionId: string): Promise<boolean> => {
    const known = isNew.get(sessionId)
    if (known !== undefined) return known
    if (isNew.size >= LOOKED_UP) {
      if (!tooLong) log.warn({}, 'stream: the replay is too long to find where the new frames begin')
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
      // The response to the read also sets the service's clock.
      return made > (await since())
    } catch (error) {
      if (error instanceof ServiceError && error.notFound) return false
      const times = (failures.get(sessionId) ?? 0) + 1
      failures.set(sessionId, times)
      // The error ends the replay, which is repeated. After a few failures the session counts as old, so that it
      // does not hold up the others for ever.
      if (!isParticular(error, times - 1)) throw error
      log.warn({ sessionId, error: messageOf(error) }, 'stream: a session cannot be read, and counts as old')
      return false
    }
  }

  /** The number of frames at the start of `batch` that may belong to the replay. */
  const endIn = (batch: readonly Pending[]): number => {
    if (replayed === null) return batch.length
    const { upTo } = replayed
    const end = batch.findIndex(
      ({ meaning }) => meaning.seq !== null && (upTo === null || isBefore(upTo, meaning.seq)),
    )
    return end === -1 ? batch.length : end
  }

  /** The index of the first new frame in `batch`; its length when there is none. */
  const beginIn = async (batch: readonly Pending[]): Promise<number> => {
    for (const [index, { meaning }] of batch.entries()) {
      const sessionId = meaning.kind === 'fact' ? meaning.fact.sessionId : null
      if (sessionId !== null && (await look(sessionId))) return index
    }
    return batch.length
  }

  /**
   * Drops old frames, and stores their hints. A new frame directly behind the replay may be taken for an old one, and
   * perhaps no other channel reports that its session was deleted.
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
      // A frame without a session may be a greeting of the service.
      if (sessionId !== null) replayed ??= { upTo: latest }
    },
    ping() {
      // A replay may take any time before its first frame.
      if (latest !== null && ++pings >= IDLE_PINGS) replayed ??= { upTo: latest }
    },
    async sift(batch) {
      const begin = found ? 0 : await beginIn(batch.slice(0, endIn(batch)))
      found ||= begin < batch.length
      await letGo(batch.slice(0, begin))
      // The service may repeat old frames after the first new one.
      return batch.slice(begin).filter(({ meaning }) => !isPast(meaning.seq))
    },
  }
}
