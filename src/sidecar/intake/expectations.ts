import { joinScopes, type HintScope } from '../../core/hint.ts'
import type { Session } from '../../core/resource.ts'
import { isOthers } from '../../core/scope.ts'
import type { Subscriber } from '../../core/bus.ts'
import type { KnownSession, KnownTurn } from '../../core/store.ts'

/** Claims, and sessions that do not agree, that are remembered: with more to read nobody waits for a single one. */
const KEPT = 10_000
/** The same of one session: each is looked up with each of its readings. */
const KEPT_OF_SESSION = 100
/** By so much a resource may lag behind what tells of it, or behind another; then it was about something else. Milliseconds. */
const LAG = 30_000

/** What is to be looked at again soon: `since` (steady milliseconds) it is known that there is more to see. */
export interface Doubt {
  since: number
  scope: HintScope
}

/**
 * What channels said of turns and actions and no reading has shown yet, and sessions whose status and turns do not agree:
 * resources may lag behind the stream and behind one another, and no second frame comes. In memory: a start reads
 * whatever is not at rest.
 */
export interface Claims extends Required<Pick<Subscriber, 'hinted' | 'ownersNoted'>> {
  /** The turns that are claimed of a session. */
  turnsOf(sessionId: string): string[]
  /**
   * `turns`: those that are not settled, and those that are claimed; of one that is there twice the latter is meant.
   * `known`: what was known before.
   * @returns what a reading leaves to be seen; null: nothing, or it lags for too long to be waited for.
   */
  weigh(session: Session, turns: readonly KnownTurn[], known: KnownSession | null): Doubt | null
  forget(sessionId: string): void
}

/** By id. */
type Turns = ReadonlyMap<string, KnownTurn>

export function createClaims(clock: { steady(): number }): Claims {
  /** By session, then by subject: since when, steady milliseconds. */
  const claims = new Map<string, Map<string, number>>()
  const disagreeing = new Map<string, number>()
  let kept = 0

  const drop = (sessionId: string, subject: string): void => {
    const ofSession = claims.get(sessionId)
    if (ofSession?.delete(subject) !== true) return
    kept--
    if (ofSession.size === 0) claims.delete(sessionId)
  }

  const add = (sessionId: string, subject: string): void => {
    const ofSession = claims.get(sessionId) ?? new Map<string, number>()
    if (ofSession.has(subject) || kept >= KEPT) return
    const [oldest] = ofSession.size >= KEPT_OF_SESSION ? ofSession.keys() : []
    if (oldest !== undefined) drop(sessionId, oldest)
    claims.set(sessionId, ofSession.set(subject, clock.steady()))
    kept++
  }

  /** What is claimed and not shown. What is shown, and what is too old, is dropped. */
  const weighClaims = (session: Session, turns: Turns, known: KnownSession | null): Doubt | null => {
    const open = new Set(session.actions.map(({ callId }) => callId))
    const before = new Set(known?.actions.map(({ callId }) => callId))
    const isShown = (kind: string, id: string): boolean => {
      if (kind === 'turn.started') return turns.get(id)?.read === true
      if (kind === 'turn.final') return turns.get(id)?.final === true
      return kind === 'action.required' ? open.has(id) || before.has(id) : !open.has(id)
    }
    const unseen: Doubt[] = []
    for (const [subject, since] of claims.get(session.id) ?? []) {
      const { kind, id } = partsOf(subject)
      if (isShown(kind, id) || clock.steady() - since > LAG) drop(session.id, subject)
      else unseen.push({ since, scope: kind.startsWith('turn') ? 'turns' : 'session' })
    }
    return unseen.length === 0 ? null : unseen.reduce(join)
  }

  const weighStatus = (session: Session, turns: Turns): Doubt | null => {
    if (agrees(session, turns)) {
      disagreeing.delete(session.id)
      return null
    }
    const since = disagreeing.get(session.id) ?? clock.steady()
    if (disagreeing.size < KEPT) disagreeing.set(session.id, since)
    return clock.steady() - since > LAG ? null : { since, scope: 'session' }
  }

  const forget = (sessionId: string): void => {
    for (const subject of claims.get(sessionId)?.keys() ?? []) drop(sessionId, subject)
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
      Array.from(claims.get(sessionId)?.keys() ?? [], partsOf)
        .filter(({ kind }) => kind.startsWith('turn'))
        .map(({ id }) => id),
    weigh(session, turns, known) {
      const byId = new Map(turns.map((turn) => [turn.turn.id, turn]))
      const claimed = weighClaims(session, byId, known)
      const doubted = weighStatus(session, byId)
      return claimed === null || doubted === null ? (claimed ?? doubted) : join(claimed, doubted)
    },
    forget,
  }
}

/** What a resource can bear out. A status may have moved on since it was told of. */
const KINDS = new Set(['turn.started', 'turn.final', 'action.required', 'action.resolved'])

function partsOf(subject: string): { kind: string; id: string } {
  const slash = subject.indexOf('/')
  return { kind: subject.slice(0, slash), id: subject.slice(slash + 1) }
}

/** The newest comes first: its readings are the closest to one another. */
function join(a: Doubt, b: Doubt): Doubt {
  return { since: Math.max(a.since, b.since), scope: joinScopes(a.scope, b.scope) }
}

/** Whether a session is as its turns and actions say: it works while a turn does, and waits while an action is open. */
function agrees({ status, actions }: Session, turns: Turns): boolean {
  const works = turns.values().some(({ read, final }) => read && !final)
  if (status === 'requires_action') return actions.length > 0
  if (status === 'working') return works
  return !(status === 'idle' || status === 'failed') || (!works && actions.length === 0)
}
