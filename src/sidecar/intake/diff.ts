import { newCall, type Call } from '../../core/call.ts'
import { stateFactId, type Fact, type Seen, type StateType } from '../../core/fact.ts'
import {
  isFinal,
  isSettled,
  summaryOf,
  type Action,
  type Session,
  type SessionSummary,
  type Turn,
} from '../../core/resource.ts'
import { answers } from '../../core/tool.ts'
import type { KnownSession, KnownTurn, Reading } from '../../core/store.ts'
import { isObject, numberOf, stringOf, writeJson, type Json, type JsonObject } from '../../std/json.ts'
import { isCollecting, QUIET } from './schedule.ts'

/** What one read of a session returned, and what was known of the session by then. */
export interface Snapshot {
  known: KnownSession | null
  /** Turns that only frames announced, of a session that is not known yet. */
  placeholders: readonly KnownTurn[]
  session: Session
  /** null: only the session was read. */
  turns: readonly Turn[] | null
  /** Actions that this read, or an earlier one that was not stored, saw open at its beginning and not at its end. */
  passed: readonly Action[]
  /** Turns that ended after the session was read, while their actions were open: their end belongs to the next read. */
  endedSince: ReadonlySet<string>
  /** The item that says why a run could not start; read only when the session failed without a turn. */
  errorItem: JsonObject | null
  /** Published artifacts of the session, listed when a turn has just settled; null: they could not be listed. */
  artifacts: JsonObject[] | null
}

export interface DiffContext {
  /** Our wall clock. */
  now: number
  /** Milliseconds of the monotonic clock. */
  steady: number
  /** The channels whose hints caused the read. */
  seen: Seen
  /**
   * What settled before this time (service clock) makes no facts: in a read of the first look (sweep.ts), or of a
   * session that came into the scope. null: in any other read.
   */
  since: number | null
  /** Names of the function tools that this sidecar runs. */
  tools: ReadonlySet<string>
  /**
   * While the stream is connected, the end of a turn waits `ms` milliseconds for its turn.ended frame. `since`: when
   * each turn was first read as final.
   */
  frameWait: { ms: number; since: Pick<ReadonlyMap<string, number>, 'get'> }
}

export interface Difference {
  reading: Omit<Reading, 'hint'>
  /**
   * Until then (steady milliseconds), a turn's end waits for its frame, and nothing of this read may be stored. null:
   * no turn waits.
   */
  waitUntil: number | null
  /** The known turns after this read. */
  turns: KnownTurn[]
}

/**
 * Compares a snapshot with what was known and returns the changes as state facts, in causal order. Pure: the facts
 * depend on the resources only, not on the hint that caused the read.
 */
export function diff(snapshot: Snapshot, context: DiffContext): Difference {
  const { known, session } = snapshot
  const summary = summaryOf(session)
  const facts: Fact[] = []
  const returned = known !== null && known.deleted
  // The session left the scope and came back: what happened meanwhile makes no facts.
  const baseline =
    returned && context.since !== null
      ? baselineOf(session, context.since)
      : (known?.baseline ?? baselineOf(session, context.since))
  const wasThere = known === null && baseline > 0
  // The session was only listed, never read, so it is not known which turns are settled. Turns of the last hour before
  // the baseline make facts: a fact too many is better than a missing one.
  const unread = known !== null && !known.atRest && !known.turns.some(({ read }) => read)
  const over = unread ? baseline - QUIET : baseline
  const knownTurns = known?.turns ?? snapshot.placeholders
  const turns = diffTurns(
    knownTurns,
    { read: snapshot.turns ?? [], endedSince: snapshot.endedSince },
    over,
    context,
  )
  const knownActions = known?.actions ?? []
  const open = new Set(session.actions.map(({ callId }) => callId))
  const before = new Set(knownActions.map(({ callId }) => callId))
  const opened = session.actions.filter(({ callId }) => !before.has(callId))
  // An action makes no fact once the end of its turn has made one.
  const reported = new Set(knownTurns.filter(({ finalFact }) => finalFact).map(({ turn }) => turn.id))
  const passed = snapshot.passed.filter(
    ({ callId, turnId }) => !before.has(callId) && !open.has(callId) && !reported.has(turnId ?? ''),
  )
  const resolved = [...knownActions.filter(({ callId }) => !open.has(callId)), ...passed]
  const atRest =
    (session.status === 'idle' || session.status === 'failed') &&
    session.actions.length === 0 &&
    turns.all.every((turn) => turn.final && !isCollecting(turn))

  const add = (type: StateType, subject: string, key: (string | number)[], data: JsonObject) =>
    facts.push(stateFact({ type, subject, key, data }, session.id, context))
  const addStatus = () => {
    const type = `session.${session.status}` as StateType
    const data: JsonObject = { session: session.raw }
    if (snapshot.errorItem !== null) data.item = snapshot.errorItem
    add(type, `${type}/${session.id}`, [session.id, session.updatedAt], data)
  }
  const addAction = (kind: 'required' | 'resolved', action: Action) =>
    add(`action.${kind}`, `action.${kind}/${action.callId}`, [action.callId], actionData(action, summary))
  const addStep = (step: Step): void => {
    if (step.kind === 'resolved') {
      if (!before.has(step.action.callId)) addAction('required', step.action)
      addAction('resolved', step.action)
      return
    }
    const { kind, turn } = step
    const data = kind === 'settled' ? settledData(turn, summary, snapshot.artifacts) : turnData(turn, summary)
    if (kind === 'ended') add(endType(turn), `turn.final/${turn.id}`, [turn.id], data)
    else add(`turn.${kind}`, `turn.${kind}/${turn.id}`, [turn.id], data)
  }
  // A session that was idle before the first look makes no facts, unless a turn of it ended since our start.
  if (!(wasThere && atRest && turns.started.length === 0)) {
    const isNew = known === null || returned
    const statusMoved = isNew
      ? session.status !== 'idle'
      : known.session.status !== session.status || failedAgain(known, session, snapshot.errorItem)
    if (isNew) add('session.created', `session.created/${session.id}`, [session.id], { session: session.raw })
    if (statusMoved && session.status === 'working') addStatus()
    const { first, last } = causalOrder({ ...turns, resolved })
    first.forEach(addStep)
    for (const action of opened) addAction('required', action)
    if (statusMoved && session.status === 'requires_action') addStatus()
    last.forEach(addStep)
    if (statusMoved && session.status !== 'working' && session.status !== 'requires_action') addStatus()
  }
  return {
    waitUntil: turns.waitUntil,
    turns: turns.all,
    reading: {
      sessionId: session.id,
      revision: known?.revision ?? null,
      session,
      baseline,
      atRest,
      turns: turns.changed,
      opened: [...passed, ...opened],
      resolved: resolved.map(({ callId }) => callId),
      newCalls: callsOf(session, context),
      facts,
      at: context.now,
    },
  }
}

/**
 * The time (service clock) up to which turns of the session are old and make no facts; 0: none is. A turn that began
 * after `since` makes facts, even if it has ended by the first look.
 */
export function baselineOf(session: Session, since: number | null): number {
  if (since === null || (session.createdAt ?? 0) > since) return 0
  return Math.min(session.updatedAt, since)
}

/** The session was deleted: its open actions and calls end with it. A session that was never known makes no facts. */
export function diffGone(
  sessionId: string,
  known: KnownSession | null,
  context: Pick<DiffContext, 'now' | 'seen'>,
): Omit<Reading, 'hint'> {
  const nothing = { ...NOTHING, sessionId, session: null, atRest: true, at: context.now }
  if (known === null || known.deleted) return { ...nothing, revision: known?.revision ?? null, baseline: 0 }
  const summary = summaryOf(known.session)
  const over = known.actions.map((action) => {
    const { callId } = action
    const data = actionData(action, summary)
    const subject = `action.resolved/${callId}`
    return stateFact({ type: 'action.resolved', subject, key: [callId], data }, sessionId, context)
  })
  const subject = `session.deleted/${sessionId}`
  const data = { session: known.session.raw }
  return {
    ...nothing,
    revision: known.revision,
    baseline: known.baseline,
    resolved: known.actions.map(({ callId }) => callId),
    facts: [
      ...over,
      stateFact({ type: 'session.deleted', subject, key: [sessionId], data }, sessionId, context),
    ],
  }
}

function byAge(a: Turn, b: Turn): number {
  return (a.createdAt ?? 0) - (b.createdAt ?? 0) || (a.startedAt ?? Infinity) - (b.startedAt ?? Infinity)
}

/** A failed session may fail to start another run: its status stays `failed`, and only a newer error item shows it. */
function failedAgain(known: KnownSession, session: Session, errorItem: JsonObject | null): boolean {
  const { status, updatedAt } = known.session
  if (session.status !== 'failed' || status !== 'failed' || errorItem === null) return false
  return session.updatedAt > updatedAt && (numberOf(errorItem.created_at) ?? 0) > updatedAt
}

interface TurnChanges {
  started: Turn[]
  ended: Turn[]
  settled: Turn[]
  changed: KnownTurn[]
  /** Every turn that was not known to be settled, as it is now. */
  all: KnownTurn[]
  waitUntil: number | null
}

function diffTurns(
  known: readonly KnownTurn[],
  { read, endedSince }: { read: readonly Turn[]; endedSince: ReadonlySet<string> },
  baseline: number,
  { steady, frameWait }: Pick<DiffContext, 'steady' | 'frameWait'>,
): TurnChanges {
  const before = new Map(known.map((entry) => [entry.turn.id, entry]))
  const changes: TurnChanges = { started: [], ended: [], settled: [], changed: [], all: [], waitUntil: null }
  const seen = new Set<string>()
  // The service lists the newest turn first. Turns of the same millisecond keep the reversed order, because the sort is
  // stable.
  for (const turn of read.toReversed().sort(byAge)) {
    if (seen.has(turn.id)) continue
    seen.add(turn.id)
    const old = before.get(turn.id)
    if (old?.settled === true) continue
    const final = isFinal(turn) && !endedSince.has(turn.id)
    // A slow read may return an old state of a turn that is stored as final: the stored state stays.
    if (old?.read === true && old.final && !final) {
      changes.all.push(old)
      continue
    }
    const settled = final && isSettled(turn)
    // A turn that settled before our first start makes no facts.
    const over = turn.completedAt ?? turn.createdAt
    const silent = old === undefined && settled && over !== null && over <= baseline
    const next: KnownTurn = {
      turn,
      read: true,
      final,
      settled,
      endedFrameAt: old?.endedFrameAt ?? null,
      finalFor: old?.finalFor ?? (final ? steady - (frameWait.since.get(turn.id) ?? steady) : null),
      finalFact: final,
    }
    changes.all.push(next)
    changes.changed.push(next)
    if (silent) continue
    if (old?.read !== true) changes.started.push(turn)
    if (final && old?.finalFact !== true) {
      changes.ended.push(turn)
      const until = steady - (next.finalFor ?? 0) + frameWait.ms
      if (next.endedFrameAt === null && until > steady) {
        changes.waitUntil = Math.max(changes.waitUntil ?? until, until)
      }
    }
    if (settled) changes.settled.push(turn)
  }
  for (const entry of known)
    if (!seen.has(entry.turn.id) && !entry.settled && entry.read) changes.all.push(entry)
  return changes
}

/** Calls of the function tools that this sidecar runs. */
export function callsOf(session: Session, { tools, now }: Pick<DiffContext, 'tools' | 'now'>): Call[] {
  return session.actions.flatMap((action): Call[] => {
    if (action.type !== 'function_call' || action.name === null || !answers(tools, action.name)) return []
    return [
      newCall({
        callId: action.callId,
        sessionId: session.id,
        turnId: action.turnId,
        name: action.name,
        action: action.raw,
        createdAt: action.createdAt,
        expiresAt: action.expiresAt,
        receivedAt: now,
      }),
    ]
  })
}

/** One step of a turn, which makes one or two facts. */
type Step = { kind: 'started' | 'ended' | 'settled'; turn: Turn } | { kind: 'resolved'; action: Action }

/** The changes to the turns of a session, each list by age. */
interface Changes {
  started: readonly Turn[]
  ended: readonly Turn[]
  settled: readonly Turn[]
  resolved: readonly Action[]
}

/**
 * The causal order of the steps. A queued message starts its turn after the turn before it has ended. So `first` has
 * the starts, each after the ends of turns that ended before it. `last` has all other ends.
 */
function causalOrder(changes: Changes): { first: Step[]; last: Step[] } {
  const resolved = new Set(changes.resolved)
  const ended = new Set(changes.ended)
  const settled = new Set(changes.settled)
  const starting = new Set(changes.started.map(({ id }) => id))
  const first: Step[] = []
  const endOf = (turn: Turn): void => {
    for (const action of resolved) {
      if (action.turnId === turn.id && resolved.delete(action)) first.push({ kind: 'resolved', action })
    }
    if (ended.delete(turn)) first.push({ kind: 'ended', turn })
    if (settled.delete(turn)) first.push({ kind: 'settled', turn })
  }
  for (const turn of changes.started) {
    for (const over of new Set([...ended, ...settled])) {
      if (!starting.has(over.id) && isOverBefore(over, turn)) endOf(over)
    }
    first.push({ kind: 'started', turn })
    starting.delete(turn.id)
  }
  const last = [
    ...Array.from(resolved, (action): Step => ({ kind: 'resolved', action })),
    ...Array.from(ended, (turn): Step => ({ kind: 'ended', turn })),
    ...Array.from(settled, (turn): Step => ({ kind: 'settled', turn })),
  ]
  return { first, last }
}

function isOverBefore({ completedAt }: Turn, next: Turn): boolean {
  const began = next.startedAt ?? next.createdAt
  return completedAt !== null && began !== null && completedAt <= began
}

function endType(turn: Turn): 'turn.completed' | 'turn.failed' | 'turn.ended' {
  if (turn.status === 'completed') return 'turn.completed'
  return turn.status === 'failed' ? 'turn.failed' : 'turn.ended'
}

/**
 * A fact that a read makes. `key`: its natural key, from which its id is made. `subject`: the event that a channel may
 * have announced.
 */
function stateFact(
  {
    type,
    subject,
    key,
    data,
  }: { type: StateType; subject: string; key: (string | number)[]; data: JsonObject },
  sessionId: string,
  { now, seen }: Pick<DiffContext, 'now' | 'seen'>,
): Fact {
  return {
    id: stateFactId(type, ...key),
    type,
    sessionId,
    turnId: turnIdOf(data),
    at: now,
    family: 'state',
    seq: null,
    body: writeJson(data),
    seen,
    subject,
  }
}

function turnIdOf({ turn, action }: JsonObject): string | null {
  if (isObject(turn)) return stringOf(turn.id)
  return isObject(action) ? stringOf(action.turn_id) : null
}

function turnData(turn: Turn, session: SessionSummary): JsonObject {
  return { turn: turn.raw, session: { ...session } }
}

/** The turn of an artifact. The interface does not show the name of this field, so each of these names is accepted. */
function turnOf({ turn_id, turnId, turn }: JsonObject): string | null {
  return stringOf(turn_id) ?? stringOf(turnId) ?? stringOf(turn)
}

/**
 * The artifacts are listed for the whole session: one that names another turn is left out, one that names no turn is
 * kept.
 */
function settledData(
  turn: Turn,
  session: SessionSummary,
  artifacts: readonly JsonObject[] | null,
): JsonObject {
  const own = artifacts?.filter((artifact) => (turnOf(artifact) ?? turn.id) === turn.id)
  return {
    ...turnData(turn, session),
    artifacts: own ?? null,
    artifacts_skipped: listOf(turn.raw.artifacts_skipped),
  }
}

/** The objects of a list; `turn` keeps the value as the service sent it. */
function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

function actionData(action: Action, session: SessionSummary): JsonObject {
  return { action: action.raw, session: { ...session } }
}

/** The parts of a read without changes. */
const NOTHING = {
  turns: [],
  opened: [],
  resolved: [],
  newCalls: [],
  facts: [],
}

/** A read that stores a session as it is, without facts. */
export function asItIs(
  session: Session,
  more: Pick<Reading, 'revision' | 'baseline' | 'atRest' | 'at'>,
): Omit<Reading, 'hint'> {
  return { ...NOTHING, sessionId: session.id, session, ...more }
}
