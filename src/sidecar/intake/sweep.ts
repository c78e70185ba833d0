import { FIRST_LOOK, FIRST_START } from '../../core/checkpoint.ts'
import type { Channel, Seen } from '../../core/fact.ts'
import type { Hint } from '../../core/hint.ts'
import type { Clock, Log } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import type { Session } from '../../core/resource.ts'
import type { OwnerNote } from '../../core/scope.ts'
import type { Reading, SessionGlance, Store } from '../../core/store.ts'
import type { Intake } from './commit.ts'
import type { Ownership } from './ownership.ts'
import { QUIET } from './schedule.ts'
import { PAGE } from './snapshot.ts'
import { asItIs } from './diff.ts'
import { startTime } from './start-time.ts'

/** Up to this many sessions, a light sweep reads the whole list: it costs no more than the filtered lists. */
const WHOLE_LIST = 200
/** A page cursor whose row was deleted returns an empty page: how often the list is started again. */
const RESTARTS = 3
/** Ids that are compared with the store in one step, to find sessions that are no longer listed. */
const COMPARE = 500
/** Delay of the hints of a sweep, milliseconds: it finds everything at once, so there is nothing to wait for. */
const DELAY = 0
/** How exactly the service's clock has to be known before the time of the first start is stored, milliseconds. */
const EXACT = 2000

export interface Sweep {
  /**
   * Walks the service's list and hints at each session that differs from the store. `whole`: all sessions, and those
   * that are no longer listed; otherwise only sessions that are new or not idle.
   */
  run(whole: boolean, seen: Seen): Promise<void>
  /** Whether the first look (below) is complete; false on an empty store. */
  looked(): Promise<boolean>
  /**
   * The first look: at the first start on an empty store, walks the list of all sessions. Stores idle sessions as
   * known, without facts, and passes the others to `look`. `since`: service clock; what is older is known, what is
   * newer makes facts.
   */
  firstLook(look: (session: Session, since: number) => Promise<void>): Promise<void>
}

export function createSweep(options: {
  service: Service
  store: Store
  intake: Intake
  ownership: Ownership
  clock: Clock
  log: Log
  /** Whether the stream is connected: then it announces the changes of sessions that are not idle. */
  stream: { connected(): boolean } | null
  /** `start_from: beginning`: everything that the service still has makes facts. */
  fromBeginning: boolean
}): Sweep {
  const { service, store, intake, ownership, clock, log, stream, fromBeginning } = options
  let done = false
  const startedAt = startTime(options)

  const noteLooked = async (): Promise<void> => {
    await store.settings.setCheckpoint(FIRST_LOOK, String(clock.now()))
    done = true
  }

  /** The service's clock, known from the page of the list that was just read. */
  const latestThere = (): number => Math.round(clock.now() + service.clockOffset())

  const looked = async (): Promise<boolean> => {
    if (done) return true
    done = (await store.settings.checkpoint(FIRST_LOOK)) !== null
    // Everything makes facts: a later start, whatever its `start_from`, has nothing to treat as known.
    if (!done && fromBeginning) await noteLooked()
    return done
  }

  const mark = async (page: readonly Session[], channel: Channel, at: number): Promise<void> => {
    const sessions = await ownership.sortPage(page, latestThere())
    const known = await store.resources.glance(sessions.map(({ id }) => id))
    const hints = sessions
      .filter((session) => {
        const before = known.get(session.id)
        // The list shows little of a session that is not idle: its turns may have changed although the session has not.
        return differs(session, before) || (before?.atRest === false && stream?.connected() !== true)
      })
      .map(({ id }): Hint => ({ sessionId: id, channel, at, scope: 'turns', delay: DELAY }))
    if (hints.length > 0) await intake.hint(hints)
  }

  /** Walks a list to its end. @returns the listed ids; null: the list could not be read as a whole. */
  const walk = async (status: string | null, each: (sessions: readonly Session[]) => Promise<void>) => {
    const ids = new Set<string>()
    for (let attempt = 0; attempt <= RESTARTS; attempt++) {
      let after: string | null = null
      for (;;) {
        const query = {
          limit: PAGE,
          ...(status === null ? {} : { status }),
          ...(after === null ? {} : { after }),
        }
        const { data, hasMore, lastId } = await service.listSessions(query)
        await each(data)
        for (const { id } of data) ids.add(id)
        // `hasMore` was true and nothing came: the row of the cursor was deleted. The list does not end there.
        if (data.length === 0 && after !== null && (lastId === null || lastId === after)) break
        if (!hasMore || lastId === null || lastId === after) return ids
        after = lastId
      }
    }
    log.warn({}, 'sweep: the list of sessions changed during the sweep; the next sweep continues')
    return null
  }

  /** Passes on the stored sessions that are not listed. `pageOf` returns ids in ascending order. */
  const eachUnlisted = async (
    listed: ReadonlySet<string>,
    pageOf: (after: string) => Promise<readonly string[]>,
    take: (ids: readonly string[]) => Promise<unknown>,
  ): Promise<void> => {
    let after: string | undefined = ''
    while (after !== undefined) {
      const ids = await pageOf(after)
      const unlisted = ids.filter((sessionId) => !listed.has(sessionId))
      if (unlisted.length > 0) await take(unlisted)
      after = ids.length < COMPARE ? undefined : ids.at(-1)
    }
  }

  const hintAt = (hint: Pick<Hint, 'channel' | 'at' | 'scope'>) => (ids: readonly string[]) =>
    intake.hint(ids.map((sessionId) => ({ ...hint, sessionId, delay: DELAY })))

  /**
   * Removes foreign sessions that are no longer listed. A session that was stored while the list was read may be
   * missing from the list, and is kept.
   */
  const forgetUnlisted = (listed: ReadonlySet<string>, at: number): Promise<void> =>
    eachUnlisted(
      listed,
      (after) => store.resources.strangers(clock.now() - at, after, COMPARE),
      (ids) => intake.commit({ owners: ids.map((sessionId) => ({ sessionId, owner: 'unknown', at })) }),
    )

  const aliveAfter = (after: string) => store.resources.alive(after, COMPARE)
  const activeAfter = (after: string) => store.resources.active(after, COMPARE)

  /**
   * When the sidecar first started, on the service's clock, which is known from the list. A session that was created
   * while an earlier process could not complete its first look is not old.
   */
  const firstStart = async (): Promise<number> => {
    const started = startedAt()
    const noted = await store.settings.checkpoint(FIRST_START)
    if (noted !== null) return Math.min(Number(noted), started)
    if (service.clockOpen() <= EXACT) await store.settings.setCheckpoint(FIRST_START, String(started))
    return started
  }

  const firstLook: Sweep['firstLook'] = async (look) => {
    const read = new Set<string>()
    const listed = await walk(null, async (sessions) => {
      const since = await firstStart()
      const fresh = await ownership.sortPage(
        sessions.filter(({ id }) => !read.has(id)),
        latestThere(),
      )
      for (const { id } of sessions) read.add(id)
      const quiet = fresh.filter((session) => isQuiet(session, since - QUIET))
      if (quiet.length > 0)
        await intake.commit({
          readings: quiet.map((session) => known(session, clock.now())),
          ...(ownership.filter.active ? { owners: quiet.map(({ id }) => oursNow(id, clock.now())) } : {}),
        })
      await Promise.all(
        fresh.filter((session) => !isQuiet(session, since - QUIET)).map((session) => look(session, since)),
      )
    })
    if (listed !== null) await noteLooked()
  }

  return {
    looked,
    firstLook,
    async run(whole, seen) {
      const channel: Channel =
        seen.stream !== undefined ? 'stream' : seen.webhook !== undefined ? 'webhook' : 'poll'
      const at = clock.now()
      const { alive, foreign } = await store.resources.count()
      if (whole || alive + foreign <= WHOLE_LIST) {
        const listed = await walk(null, (sessions) => mark(sessions, channel, at))
        if (listed === null) return
        await eachUnlisted(listed, aliveAfter, hintAt({ channel, at, scope: 'session' }))
        if (ownership.filter.active) await forgetUnlisted(listed, at)
        return
      }
      const { data } = await service.listSessions({ limit: PAGE })
      await mark(data, channel, at)
      const listed = new Set(data.map(({ id }) => id))
      for (const status of ['working', 'requires_action']) {
        const ids = await walk(status, (sessions) => mark(sessions, channel, at))
        for (const id of ids ?? []) listed.add(id)
      }
      // A session that is stored as not idle and is in no list has become idle.
      await eachUnlisted(listed, activeAfter, hintAt({ channel, at, scope: 'turns' }))
    },
  }
}

function isQuiet(session: Session, before: number): boolean {
  const rests = session.status === 'idle' || session.status === 'failed'
  return rests && session.actions.length === 0 && session.updatedAt < before
}

/** Stores a session that was idle before our start, without facts. */
function known(session: Session, at: number): Reading {
  const hint = { claim: null, lookAfter: null, scope: 'session' as const }
  return { ...asItIs(session, { revision: null, baseline: session.updatedAt, atRest: true, at }), hint }
}

function oursNow(sessionId: string, at: number): OwnerNote {
  return { sessionId, owner: 'ours', at }
}

function differs(session: Session, known: SessionGlance | undefined): boolean {
  if (known === undefined || known.deleted) return true
  return known.updatedAt !== session.updatedAt || known.status !== session.status
}
