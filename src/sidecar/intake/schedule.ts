import type { Subscriber } from '../../core/bus.ts'
import { joinScopes, type HintScope } from '../../core/hint.ts'
import type { Session } from '../../core/resource.ts'
import { isOthers } from '../../core/scope.ts'
import type { HintedSession, KnownSession, KnownTurn, Reading } from '../../core/store.ts'

/** What came to rest so long ago has no artifacts under way: it need not be looked at. Milliseconds. */
export const QUIET = 3_600_000
/** A session that is not at rest is looked at again though nobody hinted, milliseconds. */
const SAFETY_LOOK = 300_000
/** What is on its way is looked at sooner at first: most of it is there within a second or two. Milliseconds. */
const SOON = { base: 400, max: 300_000 }
/** Expectations, and sessions that do not agree, that are remembered: with more to read nobody waits for a single one. */
const KEPT = 10_000
/** The same of one session: each is looked up with each of its readings. */
const KEPT_OF_SESSION = 100
/** By so much a resource may lag behind what tells of it, or behind another; then it was about something else. Milliseconds. */
const LAG = 30_000

/** What is to be looked at again soon: `since` (steady milliseconds) it is known that there is more to see. */
export interface Expectation {
  since: number
  scope: HintScope
}

/**
 * What channels said of turns and actions and no reading has shown yet, and sessions whose status and turns do not agree:
 * resources may lag behind the stream and behind one another, and no second frame comes. In memory: a start reads
 * whatever is not at rest.
 */
export interface Expectations extends Required<Pick<Subscriber, 'hinted' | 'ownersNoted'>> {
  /** The turns that were announced of a session. */
  turnsOf(sessionId: string): string[]
  /**
   * `turns`: those that are not settled, and those that were announced; of one that is there twice the latter is meant.
   * `known`: what was known before.
   * @returns what a reading leaves to be seen; null: nothing, or it lags for too long to be waited for.
   */
  weigh(session: Session, turns: readonly KnownTurn[], known: KnownSession | null): Expectation | null
  forget(sessionId: string): void
}

/** By id. */
type Turns = ReadonlyMap<string, KnownTurn>

export function createExpectations(clock: { steady(): number }): Expectations {
  /** By session, then by subject: since when, steady milliseconds. */
  const expected = new Map<string, Map<string, number>>()
  const disagreeing = new Map<string, number>()
  let kept = 0

  const drop = (sessionId: string, subject: string): void => {
    const ofSession = expected.get(sessionId)
    if (ofSession?.delete(subject) !== true) return
    kept--
    if (ofSession.size === 0) expected.delete(sessionId)
  }

  const add = (sessionId: string, subject: string): void => {
    const ofSession = expected.get(sessionId) ?? new Map<string, number>()
    if (ofSession.has(subject) || kept >= KEPT) return
    const [oldest] = ofSession.size >= KEPT_OF_SESSION ? ofSession.keys() : []
    if (oldest !== undefined) drop(sessionId, oldest)
    expected.set(sessionId, ofSession.set(subject, clock.steady()))
    kept++
  }

  /** What was announced and is not shown. What is shown, and what is too old, is dropped. */
  const weighExpected = (session: Session, turns: Turns, known: KnownSession | null): Expectation | null => {
    const open = new Set(session.actions.map(({ callId }) => callId))
    const before = new Set(known?.actions.map(({ callId }) => callId))
    const isShown = (kind: string, id: string): boolean => {
      if (kind === 'turn.started') return turns.get(id)?.read === true
      if (kind === 'turn.final') return turns.get(id)?.final === true
      return kind === 'action.required' ? open.has(id) || before.has(id) : !open.has(id)
    }
    const unseen: Expectation[] = []
    for (const [subject, since] of expected.get(session.id) ?? []) {
      const { kind, id } = partsOf(subject)
      if (isShown(kind, id) || clock.steady() - since > LAG) drop(session.id, subject)
      else unseen.push({ since, scope: kind.startsWith('turn') ? 'turns' : 'session' })
    }
    return unseen.length === 0 ? null : unseen.reduce(join)
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

  return {
    hinted(hints) {
      for (const { sessionId, subject } of hints) {
        if (sessionId === null || subject === undefined) continue
        const { kind, id } = partsOf(subject)
        if (!KINDS.has(kind)) continue
        // What was required and is over by now need never be seen.
        if (kind === 'action.resolved') drop(sessionId, `action.required/${id}`)
        add(sessionId, subject)
      }
    },
    ownersNoted(notes) {
      for (const { sessionId, owner } of notes) if (isOthers({ owner })) forget(sessionId)
    },
    turnsOf: (sessionId) =>
      Array.from(expected.get(sessionId)?.keys() ?? [], partsOf)
        .filter(({ kind }) => kind.startsWith('turn'))
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

/** What a reading can show. A status may have moved on since it was told of. */
const KINDS = new Set(['turn.started', 'turn.final', 'action.required', 'action.resolved'])

function partsOf(subject: string): { kind: string; id: string } {
  const slash = subject.indexOf('/')
  return { kind: subject.slice(0, slash), id: subject.slice(slash + 1) }
}

/** The newest comes first: its readings are the closest to one another. */
function join(a: Expectation, b: Expectation): Expectation {
  return { since: Math.max(a.since, b.since), scope: joinScopes(a.scope, b.scope) }
}

/** Whether a session is as its turns and actions say: it works while a turn does, and waits while an action is open. */
function agrees({ status, actions }: Session, turns: Turns): boolean {
  const works = turns.values().some(({ read, final }) => read && !final)
  if (status === 'requires_action') return actions.length > 0
  if (status === 'working') return works
  return !(status === 'idle' || status === 'failed') || (!works && actions.length === 0)
}

/**
 * A turn is over and its artifacts are on the way. One that names none (null) for long has none: it is not waited for any
 * more, and settles if it names some after all.
 */
export function isCollecting({ turn, final, settled, finalReadAt }: KnownTurn, steady: number): boolean {
  if (!final || settled) return false
  return turn.artifacts !== null || steady - (finalReadAt ?? steady) < QUIET
}

/** How long a turn's end waits for the stream's turn.ended (README, Facts), milliseconds. */
const FRAME_WAIT = 2000
/** Turns whose end waits for a frame are few; more than so many at once wait no longer. */
const WAITING_KEPT = 10_000

/** What the end of a turn waits for: its frame of the stream, which says the same in its place in the transcript. */
export class FrameWaits {
  /** Steady milliseconds: since when a turn is known to be final whose frame has not come. */
  readonly since = new Map<string, number>()

  /** Milliseconds that an end may wait. `comes`: the stream is connected, and its frames come. */
  limit(comes: boolean): number {
    return comes && this.since.size < WAITING_KEPT ? FRAME_WAIT : 0
  }

  begin(turns: readonly KnownTurn[], steady: number): void {
    for (const { turn, finalReadAt } of turns) this.since.set(turn.id, finalReadAt ?? steady)
  }

  end(turns: readonly KnownTurn[]): void {
    for (const { turn } of turns) this.since.delete(turn.id)
  }
}

/** What was read of a session's items; `none`: the rest cannot be read now, and is asked for again. */
export type ItemsRead = 'all' | 'more' | 'none'

/**
 * The hint is done with, unless the session is to be looked at again by itself. `items`: what was read of them; `unseen`:
 * what was announced and did not show.
 */
export function hintAfter(
  { generation }: HintedSession,
  { turns, atRest }: { turns: readonly KnownTurn[]; atRest: boolean },
  steady: number,
  { items = 'all', unseen = null }: { items?: ItemsRead | undefined; unseen?: Expectation | null } = {},
): Reading['hint'] {
  const collecting = turns.filter((turn) => isCollecting(turn, steady))
  const looks: { after: number; scope: HintScope }[] = []
  if (items === 'more') looks.push({ after: 0, scope: 'session' })
  if (unseen !== null) looks.push({ after: soonAfter(unseen.since, steady), scope: unseen.scope })
  if (collecting.length > 0) {
    const youngest = Math.max(...collecting.map(({ finalReadAt }) => finalReadAt ?? steady))
    looks.push({ after: soonAfter(youngest, steady), scope: 'artifacts' })
  }
  if (looks.length === 0 && !(atRest && items === 'all')) looks.push({ after: SAFETY_LOOK, scope: 'session' })
  const scopes = looks.map(({ scope }) => scope)
  return {
    generation,
    lookAfter: looks.length === 0 ? null : Math.min(...looks.map(({ after }) => after)),
    scope: scopes.length === 0 ? 'session' : scopes.reduce(joinScopes),
  }
}

/** Twice as long as we have waited already, so that the readings thin out. */
function soonAfter(since: number, steady: number): number {
  return Math.min(SOON.max, Math.max(SOON.base, steady - since))
}
