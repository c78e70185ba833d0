import type { Subscriber } from '../../core/bus.ts'
import { joinScopes, type HintScope } from '../../core/hint.ts'
import type { Action, Session } from '../../core/resource.ts'
import { isOthers } from '../../core/scope.ts'
import type { Shards, ShardTopics } from '../../core/shards.ts'
import { BoundedMap } from '../../std/bounded-map.ts'
import type { HintClaim, HintedSession, KnownSession, KnownTurn, Reading } from '../../core/store.ts'

/** A turn that ended longer ago than this publishes no more artifacts and is not read again, milliseconds. */
export const QUIET = 3_600_000
/** A session that is not idle is read again after this time, even without a hint, milliseconds. */
const SAFETY_LOOK = 300_000
/** Backoff of the reads for an expected change: most changes show within one or two seconds. Milliseconds. */
const SOON = { base: 400, max: 300_000 }
/**
 * The most expectations in memory, and the most sessions whose status does not fit their turns. With so many sessions
 * to read, a missing expectation does not matter.
 */
const KEPT = 10_000
/** The most expectations of one session: each read of the session checks all of them. */
const KEPT_OF_SESSION = 100
/**
 * The longest that a resource may lag behind a frame or behind another resource, milliseconds. After that, the
 * expectation is dropped.
 */
const LAG = 30_000

/**
 * An announced change that no read has shown yet: `scope` is read again soon. `since`: when the change was announced,
 * steady milliseconds.
 */
export interface Expectation {
  since: number
  scope: HintScope
}

/**
 * Changes to turns and actions that a channel announced and no read has shown yet. A resource may lag behind the stream,
 * and no second frame comes, so the session is read again until it shows the change. The same for a session whose status
 * and turns do not agree. In memory, because a start reads every session that is not idle.
 */
export interface Expectations
  extends Required<Pick<Subscriber, 'hinted' | 'ownersNoted'>>, Pick<ShardTopics, 'lost' | 'woken'> {
  /** The announced turns of a session. */
  turnsOf(sessionId: string): string[]
  /**
   * `turns`: the turns that are not settled, then the announced ones; of two entries of one turn the latter counts.
   * `known`: the stored state before the read.
   * @returns what the read did not show yet; null: nothing, or it lags too long to wait for.
   */
  weigh(session: Session, turns: readonly KnownTurn[], known: KnownSession | null): Expectation | null
  forget(sessionId: string): void
}

/** A change of a turn or an action: the parts of its subject. */
interface Announced {
  kind: string
  id: string
  expectation: Expectation
}

/** Turns by their ids. */
type Turns = ReadonlyMap<string, KnownTurn>

/** `shards`: a session of another process is read there, so nothing is expected here. */
export function createExpectations(clock: { steady(): number }, shards: Pick<Shards, 'owns'>): Expectations {
  /** The announced changes, by session and subject. */
  const expected = new Map<string, Map<string, Announced>>()
  const disagreeing = new Map<string, number>()
  let kept = 0

  const drop = (sessionId: string, subject: string): void => {
    const ofSession = expected.get(sessionId)
    if (ofSession?.delete(subject) !== true) return
    kept--
    if (ofSession.size === 0) expected.delete(sessionId)
  }

  const add = (sessionId: string, subject: string, kind: string, id: string): void => {
    const ofSession = expected.get(sessionId) ?? new Map<string, Announced>()
    if (ofSession.has(subject) || kept >= KEPT) return
    const [oldest] = ofSession.size >= KEPT_OF_SESSION ? ofSession.keys() : []
    if (oldest !== undefined) drop(sessionId, oldest)
    const scope = kind.startsWith('turn') ? 'turns' : 'session'
    expected.set(
      sessionId,
      ofSession.set(subject, { kind, id, expectation: { scope, since: clock.steady() } }),
    )
    kept++
  }

  /** The announced changes that the read does not show. Drops those that it shows and those that are too old. */
  const weighExpected = (session: Session, turns: Turns, known: KnownSession | null): Expectation | null => {
    const ofSession = expected.get(session.id)
    if (ofSession === undefined) return null
    const open = new Set(session.actions.map(({ callId }) => callId))
    const before = new Set(known?.actions.map(({ callId }) => callId))
    const isShown = ({ kind, id }: Announced): boolean => {
      if (kind === 'turn.started') return turns.get(id)?.read === true
      if (kind === 'turn.final') return turns.get(id)?.final === true
      return kind === 'action.required' ? open.has(id) || before.has(id) : !open.has(id)
    }
    const oldest = clock.steady() - LAG
    let unseen: Expectation | null = null
    // A hundred announced turns are weighed at each read: an iterator would make an object for each.
    ofSession.forEach((announced, subject) => {
      const { expectation } = announced
      if (isShown(announced) || expectation.since < oldest) drop(session.id, subject)
      else unseen = unseen === null ? expectation : join(unseen, expectation)
    })
    return unseen
  }

  const weighStatus = (session: Session, turns: Turns): Expectation | null => {
    if (agrees(session, turns)) {
      disagreeing.delete(session.id)
      return null
    }
    const since = disagreeing.get(session.id) ?? clock.steady()
    if (disagreeing.size < KEPT) disagreeing.set(session.id, since)
    return clock.steady() - since > LAG ? null : { since, scope: 'session' }
  }

  const forget = (sessionId: string): void => {
    for (const subject of expected.get(sessionId)?.keys() ?? []) drop(sessionId, subject)
    disagreeing.delete(sessionId)
  }

  const expect = (sessionId: string, subject: string): void => {
    const { kind, id } = partsOf(subject)
    if (!KINDS.has(kind) || !shards.owns(sessionId)) return
    // The action is over, so the read need not show that it was required.
    if (kind === 'action.resolved') drop(sessionId, `action.required/${id}`)
    add(sessionId, subject, kind, id)
  }

  return {
    hinted(hints) {
      for (const { sessionId, subject } of hints)
        if (sessionId !== null && subject !== undefined) expect(sessionId, subject)
    },
    woken({ hints }) {
      for (const { sessionId, subject } of hints) expect(sessionId, subject)
    },
    lost() {
      for (const sessionId of [...expected.keys(), ...disagreeing.keys()])
        if (!shards.owns(sessionId)) forget(sessionId)
    },
    ownersNoted(notes) {
      for (const { sessionId, owner } of notes) if (isOthers({ owner })) forget(sessionId)
    },
    turnsOf: (sessionId) =>
      Array.from(expected.get(sessionId)?.values() ?? [])
        .filter(({ expectation }) => expectation.scope === 'turns')
        .map(({ id }) => id),
    weigh(session, turns, known) {
      const byId = new Map(turns.map((turn) => [turn.turn.id, turn]))
      const announced = weighExpected(session, byId, known)
      const status = weighStatus(session, byId)
      return announced === null || status === null ? (announced ?? status) : join(announced, status)
    },
    forget,
  }
}

/**
 * The kinds of changes that a read can show. A session status is not among them: it may have changed again since it was
 * announced.
 */
const KINDS = new Set(['turn.started', 'turn.final', 'action.required', 'action.resolved'])

function partsOf(subject: string): { kind: string; id: string } {
  const slash = subject.indexOf('/')
  return { kind: subject.slice(0, slash), id: subject.slice(slash + 1) }
}

/** The newest expectation counts: its reads follow each other most closely. */
function join(a: Expectation, b: Expectation): Expectation {
  if (a.since >= b.since && a.scope === b.scope) return a
  return { since: Math.max(a.since, b.since), scope: joinScopes(a.scope, b.scope) }
}

/**
 * Whether the status of a session fits its turns and actions: it works while a turn does, and requires action while an
 * action is open.
 */
function agrees({ status, actions }: Session, turns: Turns): boolean {
  const works = turns.values().some(({ read, final }) => read && !final)
  if (status === 'requires_action') return actions.length > 0
  if (status === 'working') return works
  return !(status === 'idle' || status === 'failed') || (!works && actions.length === 0)
}

/**
 * Whether the artifacts of a final turn are still on the way. A turn whose artifacts stay null for long has none: the
 * sidecar stops waiting, and the turn still settles if artifacts appear later.
 */
export function isCollecting({ turn, final, settled, finalFor }: KnownTurn): boolean {
  if (!final || settled) return false
  return turn.artifacts !== null || (finalFor ?? 0) < QUIET
}

/** How long a turn's end waits for the stream's turn.ended frame (test/README.md, Guarantees), milliseconds. */
const FRAME_WAIT = 2000
/** The most turns whose end waits for a frame; while there are as many, no end waits longer. */
const WAITING_KEPT = 10_000

/**
 * Tracks turns whose end waits for the stream's frame, which has its own position in the transcript. A turn ends behind
 * 40,000 frames, and its own frame waits here for 10 s until they are stored and delivered: that time does not count. It also
 * keeps the actions that a postponed read saw come and go.
 */
export class FrameWaits {
  readonly #heldFor: () => number
  readonly #waiting = new Map<string, { at: number; heldFor: number }>()
  /** By session: the actions that a read saw open and then gone, and could not store. The next read cannot see them. */
  readonly #passed = new BoundedMap<string, readonly Action[]>(WAITING_KEPT)

  /** `heldFor`: how long frames of the stream have waited here in all, milliseconds. */
  constructor(heldFor: () => number) {
    this.#heldFor = heldFor
  }

  /**
   * When a waiting turn was first read as final, steady milliseconds, plus the time that does not count. That time has
   * a limit: frames may come without a pause, while the frame of this turn never comes.
   */
  get(turnId: string): number | undefined {
    const entry = this.#waiting.get(turnId)
    return entry && entry.at + Math.min(LAG, this.#heldFor() - entry.heldFor)
  }

  /** Milliseconds that a turn's end may wait. `comes`: the stream is connected, so the frame comes. */
  limit(comes: boolean, steady: number): number {
    if (this.#waiting.size >= WAITING_KEPT) this.#forget(steady - LAG - FRAME_WAIT)
    return comes && this.#waiting.size < WAITING_KEPT ? FRAME_WAIT : 0
  }

  passed(sessionId: string): readonly Action[] {
    return this.#passed.get(sessionId) ?? []
  }

  /** Replaces the actions that `passed` returns. */
  keep(sessionId: string, passed: readonly Action[]): void {
    if (passed.length > 0) this.#passed.set(sessionId, passed)
    else this.#passed.delete(sessionId)
  }

  begin(turns: readonly KnownTurn[], steady: number): void {
    for (const { turn, finalFor } of turns) {
      if (finalFor === null || this.#waiting.has(turn.id)) continue
      this.#waiting.set(turn.id, { at: steady - finalFor, heldFor: this.#heldFor() })
    }
  }

  end(turns: readonly KnownTurn[]): void {
    for (const { turn } of turns) this.#waiting.delete(turn.id)
  }

  /** A session is deleted while its turn waits, or goes to another process: nothing ends that wait. */
  #forget(before: number): void {
    for (const [turnId, { at }] of this.#waiting) if (at < before) this.#waiting.delete(turnId)
  }
}

/** What a session is read for: a claimed hint, or the first look, which no hint caused. */
export type ReadEntry = Omit<HintedSession, 'claim'> & { claim: HintClaim | null }

/** How much of a session's items was read; `none`: the rest cannot be read now and is requested again. */
export type ItemsRead = 'all' | 'more' | 'none'

/** What a read leaves to a later one. */
interface Leftover {
  items?: ItemsRead | undefined
  unseen?: Expectation | null
  endedSince?: ReadonlySet<string>
}

/**
 * What becomes of a hint after its read: acknowledged, unless the session must be read again without a further hint.
 * `items`: how much of them was read; `unseen`: announced changes that the read did not show; `endedSince`: turns whose
 * end is left to the next read.
 */
export function hintAfter(
  { claim }: Pick<ReadEntry, 'claim'>,
  { turns, atRest }: { turns: readonly KnownTurn[]; atRest: boolean },
  steady: number,
  { items = 'all', unseen = null, endedSince }: Leftover = {},
): Reading['hint'] {
  const collecting = turns.filter(isCollecting)
  const looks: { after: number; scope: HintScope }[] = []
  if (items === 'more') looks.push({ after: 0, scope: 'session' })
  if (endedSince !== undefined && endedSince.size > 0) looks.push({ after: SOON.base, scope: 'turns' })
  if (unseen !== null) looks.push({ after: soonAfter(steady - unseen.since), scope: unseen.scope })
  if (collecting.length > 0) {
    const youngest = Math.min(...collecting.map(({ finalFor }) => finalFor ?? 0))
    looks.push({ after: soonAfter(youngest), scope: 'artifacts' })
  }
  if (looks.length === 0 && !(atRest && items === 'all')) looks.push({ after: SAFETY_LOOK, scope: 'session' })
  const scopes = looks.map(({ scope }) => scope)
  return {
    claim,
    lookAfter: looks.length === 0 ? null : Math.min(...looks.map(({ after }) => after)),
    scope: scopes.length === 0 ? 'session' : scopes.reduce(joinScopes),
  }
}

/** A delay that grows with the time waited so far, so that the reads become rarer. */
function soonAfter(waited: number): number {
  return Math.min(SOON.max, Math.max(SOON.base, waited))
}
