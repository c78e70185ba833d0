import type { Clock, Log } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import type { Session } from '../../core/resource.ts'
import { isOthers, type OwnerRecord } from '../../core/scope.ts'
import type { HintedSession, KnownSession, Reading, Store } from '../../core/store.ts'
import type { Ahead } from './prefetch.ts'
import type { Claims } from './expectations.ts'
import { baselineOf, compare, compareGone, type DiffContext, type Difference } from './diff.ts'
import type { Intake } from './intake.ts'
import type { Items } from './items.ts'
import { atHand, isOlder, readSession } from './look.ts'
import { hintAfter } from './next-look.ts'
import type { Ownership } from './ownership.ts'
import { asItIs, firstOf, nothingThere } from './reading.ts'
import { createViewer, type ReadRequest, type ViewOptions } from './view.ts'

/** How long a turn's end waits for the stream's turn.ended (README, Facts), milliseconds. */
const FRAME_WAIT = 2000
/** By how much the clocks of a service's machines may differ, milliseconds. */
const CLOCKS_DIFFER = 60_000
/** Turns whose end waits for a frame are few; more than so many at once wait no longer. */
const WAITING_KEPT = 10_000

/** The entry under which the first look reads a session: no hint made it. */
const FIRST: HintedSession = { sessionId: null, generation: -1, scope: 'turns', seen: {}, failures: 0 }

export interface ReadOptions extends Omit<ViewOptions, 'claimedTurns'> {
  service: Service
  store: Store
  intake: Intake
  items: Items | null
  clock: Clock
  log: Log
  /** The stream is connected: it tells of turns, and its turn.ended frames come. */
  stream: { connected(): boolean } | null
  /** Steady milliseconds: when this sidecar started. */
  startedAt: number
  ahead: Ahead
  claims: Claims
  ownership: Ownership
}

export interface SessionReader {
  /**
   * Reads a dirty session and commits what changed. `listed`: as a page of the list showed it.
   * @returns false when it was put off, and so is not claimed any more.
   */
  read(entry: HintedSession, sessionId: string, listed: Session | undefined): Promise<boolean>
  /** Reads a session that was there before us. */
  readFirst(session: Session): Promise<void>
  /** Takes a session that was there before us, and cannot be read, as the list shows it; it is read as any other. */
  takeFirst(session: Session): Promise<void>
}

/** Reads sessions and their turns, compares, and writes what happened through the intake. */
export function createSessionReader(options: ReadOptions): SessionReader {
  const { service, store, intake, clock, claims, ownership } = options
  const readOn = createViewer({ ...options, claimedTurns: claims.turnsOf })
  const readAlive = (sessionId: string): Promise<Session | null> => readSession(service, sessionId)
  /** Steady milliseconds: since when a turn is known to be final whose frame has not come. */
  const finalSince = new Map<string, number>()

  const read = async (
    entry: HintedSession,
    sessionId: string,
    listed: Session | undefined,
    firstLook: boolean,
  ): Promise<boolean> => {
    const noted = ownership.active ? await ownership.noted(sessionId) : null
    // Found to be foreign since its hint was claimed; the hint went then.
    if (noted !== null && isOthers(noted)) return true
    const before = await store.resources.known(sessionId)
    const first =
      atHand(entry, before, listed, latestThere()) ??
      (await (options.ahead.take(sessionId) ?? readAlive(sessionId)))
    if (first === null) return await writeGone(entry, sessionId)
    const adoptedAt = before === null || before.deleted ? (noted?.adoptedAt ?? null) : null
    if (isOlder(first, before, latestThere())) return await writeNothing(entry, before)
    if (ownership.active && !(await admit(first, noted))) return true
    const request: ReadRequest = {
      entry,
      before,
      firstLook: firstLook || adoptedAt !== null,
      startedAt: adoptedAt ?? startedAtThere(),
      streamTells: options.stream?.connected() ?? false,
    }
    const view = await readOn(request, first)
    if (view === null) return await writeGone(entry, sessionId)
    // Its metadata may have changed while its turns were read.
    if (ownership.active && !(await admit(view.session, noted))) return true
    const knownTurns = view.known?.turns ?? view.placeholders
    // A first look that failed leaves readings behind: by now others may have seen more.
    if (isOlder(view.session, view.known, latestThere())) return await writeNothing(entry, view.known)
    const context = contextOf(request)
    const difference = compare(view.known, view.placeholders, view, context, finalSince)
    if (difference.waitUntil !== null) return await putOff(difference, difference.waitUntil, context.steady)
    // The hint goes with the reading: what is read after it is lost in a crash, or when it cannot be read.
    const items = await options.items?.read(
      sessionId,
      difference.reading.baseline,
      request.startedAt,
      entry.failures,
    )
    const doubt = claims.weigh(view.session, [...knownTurns, ...difference.turns], view.known)
    const hint = hintAfter(entry, difference, context.steady, { items, doubt })
    return await write(entry, { ...difference.reading, hint })
  }

  /** Notes whose a session is, as it was just read. @returns whether it is ours. */
  const admit = async (session: Session, noted: OwnerRecord | null): Promise<boolean> => {
    const isOurs = ownership.isOurs(session)
    if (!isOurs) await ownership.note(session.id, 'foreign')
    else if (noted?.owner !== 'ours') await ownership.note(session.id, 'ours')
    return isOurs
  }

  /** Service clock, milliseconds: nothing there can have happened later. */
  const latestThere = (): number => clock.now() + service.clockOffset() + service.clockOpen() + CLOCKS_DIFFER

  /** When we started, on the service's clock, by our age: the wall clock may have been set since. */
  const startedAtThere = (): number => {
    const age = Math.round(clock.steady() - options.startedAt)
    return clock.now() + service.clockOffset() - age
  }

  const contextOf = ({ entry, firstLook, startedAt, streamTells }: ReadRequest): DiffContext => ({
    now: clock.now(),
    steady: clock.steady(),
    seen: firstOf(entry.seen, clock.now()),
    firstLook,
    startedAt,
    tools: options.tools,
    frameWait: { connected: streamTells && !firstLook && finalSince.size < WAITING_KEPT, ms: FRAME_WAIT },
  })

  /** Waits for the frame of a turn's end, which may have come by now, or for its wait to be over: then the session is read again. */
  const putOff = async ({ reading }: Difference, until: number, steady: number): Promise<false> => {
    for (const { turn, finalReadAt } of reading.turns) finalSince.set(turn.id, finalReadAt ?? steady)
    await store.hints.defer(reading.sessionId, Math.max(0, until - clock.steady()))
    return false
  }

  const write = async (entry: HintedSession, reading: Reading): Promise<boolean> => {
    if (!(await intake.reading(reading))) {
      if (entry !== FIRST) await store.hints.defer(entry.sessionId, 0)
      return false
    }
    for (const { turn } of reading.turns) finalSince.delete(turn.id)
    if (reading.resolved.length > 0) {
      options.bus.actionsGone(reading.resolved, reading.session === null ? 'deleted' : 'resolved')
    }
    return true
  }

  /** What we know is newer than what we were told: only the hint is done with. */
  const writeNothing = async (entry: HintedSession, known: KnownSession): Promise<boolean> => {
    const { session, revision, baseline, atRest } = known
    const reading = asItIs(session, { revision, baseline, atRest, at: clock.now() })
    const doubt = claims.weigh(session, known.turns, known)
    const hint = hintAfter(entry, { turns: known.turns, reading }, clock.steady(), { doubt })
    return await write(entry, { ...reading, hint })
  }

  const writeGone = async (entry: HintedSession, sessionId: string): Promise<boolean> => {
    claims.forget(sessionId)
    const known = await store.resources.known(sessionId)
    const isKnown = known !== null && !known.deleted
    if (ownership.active && !isKnown && (await ownership.noted(sessionId))?.owner !== 'ours') {
      // Its owner can no longer be found out.
      await ownership.note(sessionId, 'gone')
      return true
    }
    const hint = { generation: entry.generation, lookAfter: null, scope: 'session' as const }
    if (known === null || known.deleted) {
      const reading = nothingThere(sessionId, known?.revision ?? null, clock.now())
      await intake.commit({ readings: [{ ...reading, hint }] })
      return true
    }
    return await write(entry, {
      ...compareGone(known, { now: clock.now(), seen: firstOf(entry.seen, clock.now()) }),
      hint,
    })
  }

  return {
    read: (entry, sessionId, listed) => read(entry, sessionId, listed, false),
    async readFirst(session) {
      await read(FIRST, session.id, session, true)
    },
    async takeFirst(session) {
      const { id: sessionId } = session
      const at = clock.now()
      const baseline = baselineOf(session, { firstLook: true, startedAt: startedAtThere() })
      // One that was made since is news, whenever it is read.
      if (baseline === 0)
        return await intake.hint([{ sessionId, channel: 'poll', at, scope: 'turns', delay: 0 }])
      const hint = { generation: null, lookAfter: 0, scope: 'turns' as const }
      await intake.commit({
        readings: [{ ...asItIs(session, { revision: null, baseline, atRest: false, at }), hint }],
      })
    },
  }
}
