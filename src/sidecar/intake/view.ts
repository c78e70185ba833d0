import type { Bus } from '../../core/bus.ts'
import type { Call } from '../../core/call.ts'
import type { Clock, Log } from '../../std/ports.ts'
import type { Service } from '../../core/ports.ts'
import { isFinal, type Action, type Session, type Turn } from '../../core/resource.ts'
import type { HintedSession, KnownSession, KnownTurn, Store } from '../../core/store.ts'
import { baselineOf, callsOf, type Look } from './diff.ts'
import {
  isGone,
  needsTurns,
  readArtifacts,
  readSession,
  readStartFailure,
  readTurns,
  settlesAnew,
} from './look.ts'

/** So often a session is read again that moved on while its turns were read. */
const REREAD = 3

export interface ViewOptions {
  service: Service
  store: Store
  clock: Clock
  log: Log
  /** Names of the function tools that we run. */
  tools: ReadonlySet<string>
  /** Tools have to hear whose call they get before the session is stored. */
  bus: Pick<Bus, 'sessionRead' | 'actionsGone'>
  /** Takes on calls that a reading found. */
  takeCalls: (calls: readonly Call[]) => Promise<void>
  /** Turns of a session that a channel told of. */
  claimedTurns: (sessionId: string) => readonly string[]
}

/** One reading of a session. */
export interface ReadRequest {
  entry: HintedSession
  /** What we knew when it began. */
  before: KnownSession | null
  firstLook: boolean
  /** Service clock, milliseconds: when this sidecar started. */
  startedAt: number
  streamTells: boolean
}

/** What it saw, and what we know of the session by then. */
export interface View extends Look {
  known: KnownSession | null
  /** Turns of a session that is not known: only frames told of them. */
  placeholders: KnownTurn[]
}

/** Reads on from the session, `first`: all that a comparison needs. null: the session is gone. */
export type Viewer = (request: ReadRequest, first: Session) => Promise<View | null>

export function createViewer(options: ViewOptions): Viewer {
  const { service, store, bus, clock, log } = options

  /** Calls that are new are taken on at once: their tools run while the turns are read. @returns their ids. */
  const takeCalls = async (before: KnownSession | null, session: Session): Promise<string[]> => {
    const known = new Set(before?.actions.map(({ callId }) => callId))
    const context = { tools: options.tools, now: clock.now(), steady: clock.steady() }
    const newCalls = callsOf(session, context).filter(({ callId }) => !known.has(callId))
    if (newCalls.length === 0) return []
    bus.sessionRead(session)
    await options.takeCalls(newCalls)
    return newCalls.map(({ callId }) => callId)
  }

  /** Calls that were over before their turns were read: where the reading fails none ever finds them gone. */
  const tellOver = (taken: readonly string[], session: Session | null): void => {
    const open = new Set(session?.actions.map(({ callId }) => callId))
    const over = taken.filter((callId) => !open.has(callId))
    if (over.length > 0) bus.actionsGone(over, session === null ? 'deleted' : 'resolved')
  }

  /**
   * The turns are read after the session, and things go on in between: a turn that has ended meanwhile waits for nothing
   * any more, and an action of a turn that is not in the list is not told before it. null: the session is gone.
   */
  const readBoth = async (
    first: Session,
    knownTurns: readonly KnownTurn[],
    baseline: number,
  ): Promise<Pick<View, 'session' | 'turns' | 'passed'> | null> => {
    let session: Session | null = first
    const seen = new Map<string, Action>()
    for (let attempt = 0; ; attempt++) {
      for (const action of session.actions) seen.set(action.callId, action)
      const turns = await turnsOf(session.id, knownTurns, baseline)
      if (turns === null) return null
      if (attempt === REREAD || agree(session, turns)) {
        for (const { callId } of session.actions) seen.delete(callId)
        return { session, turns, passed: [...seen.values()] }
      }
      session = await readSession(service, session.id)
      if (session === null) return null
    }
  }

  /** null: they are not there, and nor is their session; where only they were asked for, nobody would ever notice. */
  const turnsOf = async (sessionId: string, known: readonly KnownTurn[], baseline: number) => {
    try {
      return await readTurns(service, sessionId, known, baseline)
    } catch (error) {
      if (await isGone(service, error, sessionId)) return null
      throw error
    }
  }

  return async ({ before, entry, ...request }, first) => {
    const taken = await takeCalls(before, first)
    const knownTurns = before?.turns ?? (await store.resources.knownTurns(first.id, []))
    const baseline = before?.baseline ?? baselineOf(first, request)
    const both = needsTurns(before, first, entry.scope !== 'session', request.streamTells)
      ? await readBoth(first, knownTurns, baseline)
      : { session: first, turns: null, passed: [] }
    tellOver(taken, both?.session ?? null)
    if (both === null) return null
    const { session, turns } = both
    const errorItem = await readStartFailure(service, session, before, turns, entry.failures)
    // What the stream committed while we read counts: its turn.ended frame may have come.
    const ids = [
      ...(turns ?? []).map(({ id }) => id),
      ...both.passed.flatMap(({ turnId }) => turnId ?? []),
      ...options.claimedTurns(session.id),
    ]
    const known = await store.resources.known(session.id, ids)
    const placeholders = known === null ? await store.resources.knownTurns(session.id, ids) : []
    const settles = settlesAnew(turns ?? [], known?.turns ?? placeholders)
    const artifacts = settles ? await readArtifacts(service, session.id, entry.failures, log) : null
    if (artifacts === 'gone') return null
    return { ...both, known, placeholders, errorItem, artifacts }
  }
}

/** Whether each action is of a turn that was read, and that goes on. */
function agree(session: Session, turns: readonly Turn[]): boolean {
  const read = new Map(turns.map((turn) => [turn.id, turn]))
  return session.actions.every(({ turnId }) => {
    const turn = turnId === null ? undefined : read.get(turnId)
    return turnId === null || (turn !== undefined && !isFinal(turn))
  })
}
