import { newCall, type Call } from '../../core/call.ts'
import type { Fact, Seen, StateType } from '../../core/fact.ts'
import { numberOf, type JsonObject } from '../../std/json.ts'
import { isFinal, isSettled, type Action, type Session, summaryOf, type Turn } from '../../core/resource.ts'
import type { KnownSession, KnownTurn, Reading } from '../../core/store.ts'
import { actionData, endType, settledData, stateFact, turnData } from './facts.ts'
import { isCollecting, QUIET } from './look.ts'
import { causalOrder, type Step } from './order.ts'

/** A session as just read. `turns` null: they were not read, only the session was. */
export interface Look {
  session: Session
  turns: readonly Turn[] | null
  /** Actions that were open when the reading began and over when it ended. */
  passed: readonly Action[]
  /** The item that says why a run could not start; only looked for when the session failed without a turn. */
  errorItem: JsonObject | null
  /** Published artifacts of the session, read when a turn has just settled; null when they could not be listed. */
  artifacts: JsonObject[] | null
}

export interface DiffContext {
  /** Our wall clock. */
  now: number
  /** Milliseconds of the monotonic clock. */
  steady: number
  /** Which channels made us look. */
  seen: Seen
  /** What was at rest before us makes no facts. */
  firstLook: boolean
  /** When we started, on the service's clock. */
  startedAt: number
  /** Names of the function tools that we run. */
  tools: ReadonlySet<string>
  /** Turns that were read as final while the stream, which is connected, has not yet told of their end wait so long. */
  frameWait: { connected: boolean; ms: number }
}

export interface Difference {
  reading: Omit<Reading, 'hint'>
  /** A turn's end waits for its frame until then (steady milliseconds): nothing is to be written before. */
  waitUntil: number | null
  /** What is known of the turns from now on. */
  turns: KnownTurn[]
}

/**
 * Compares what was read with what we knew, and names what happened in between as state facts, in causal order.
 * Pure: success, ends and actions are as the resources say, whatever made us look.
 */
export function compare(
  known: KnownSession | null,
  placeholders: readonly KnownTurn[],
  look: Look,
  context: DiffContext,
  finalSince: ReadonlyMap<string, number>,
): Difference {
  const { session } = look
  const summary = summaryOf(session)
  const facts: Fact[] = []
  const returned = known !== null && known.deleted
  // Of one that left the scope and came back, what happened meanwhile was not ours.
  const baseline =
    returned && context.firstLook
      ? baselineOf(session, context)
      : (known?.baseline ?? baselineOf(session, context))
  const wasThere = known === null && baseline > 0
  // Of a session that was only taken from the list nobody knows which turns were at rest: rather too much is told.
  const unread = known !== null && !known.atRest && !known.turns.some(({ read }) => read)
  const over = unread ? baseline - QUIET : baseline
  const knownTurns = known?.turns ?? placeholders
  const turns = compareTurns(knownTurns, look.turns ?? [], over, context, finalSince)
  const knownActions = known?.actions ?? []
  const open = new Set(session.actions.map(({ callId }) => callId))
  const before = new Set(knownActions.map(({ callId }) => callId))
  const opened = session.actions.filter(({ callId }) => !before.has(callId))
  // What a turn waited for is not told once its end is.
  const told = new Set(knownTurns.filter(({ finalFact }) => finalFact).map(({ turn }) => turn.id))
  const passed = look.passed.filter(
    ({ callId, turnId }) => !before.has(callId) && !open.has(callId) && !told.has(turnId ?? ''),
  )
  const resolved = [...knownActions.filter(({ callId }) => !open.has(callId)), ...passed]
  const atRest =
    (session.status === 'idle' || session.status === 'failed') &&
    session.actions.length === 0 &&
    turns.all.every((turn) => turn.final && !isCollecting(turn, context.steady))

  const add = (type: StateType, subject: string, key: (string | number)[], data: JsonObject) =>
    facts.push(stateFact(type, subject, key, session.id, data, context))
  const addStatus = () => {
    const type = `session.${session.status}` as StateType
    const data: JsonObject = { session: session.raw }
    if (look.errorItem !== null) data.item = look.errorItem
    add(type, `${type}/${session.id}`, [session.id, session.updatedAt], data)
  }
  const addAction = (kind: 'required' | 'resolved', action: Action) =>
    add(`action.${kind}`, `action.${kind}/${action.callId}`, [action.callId], actionData(action, summary))
  const tell = (step: Step): void => {
    if (step.kind === 'resolved') {
      if (!before.has(step.action.callId)) addAction('required', step.action)
      addAction('resolved', step.action)
      return
    }
    const { kind, turn } = step
    const data = kind === 'settled' ? settledData(turn, summary, look.artifacts) : turnData(turn, summary)
    if (kind === 'ended') add(endType(turn), `turn.final/${turn.id}`, [turn.id], data)
    else add(`turn.${kind}`, `turn.${kind}/${turn.id}`, [turn.id], data)
  }
  // What rested before our first look is taken as known; a turn that ended since then is news.
  if (!(wasThere && atRest && turns.started.length === 0)) {
    const isNew = known === null || returned
    const statusMoved = isNew
      ? session.status !== 'idle'
      : known.status !== session.status || failedAgain(known, session, look.errorItem)
    if (isNew) add('session.created', `session.created/${session.id}`, [session.id], { session: session.raw })
    if (statusMoved && session.status === 'working') addStatus()
    const { first, last } = causalOrder({ ...turns, resolved })
    first.forEach(tell)
    for (const action of opened) addAction('required', action)
    if (statusMoved && session.status === 'requires_action') addStatus()
    last.forEach(tell)
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
 * Up to when (service clock) what a session shows was there before us. A turn that began after our start is news, though
 * the first look finds it over.
 */
export function baselineOf(
  session: Session,
  { firstLook, startedAt }: Pick<DiffContext, 'firstLook' | 'startedAt'>,
): number {
  if (!firstLook || (session.createdAt ?? 0) > startedAt) return 0
  return Math.min(session.updatedAt, startedAt)
}

/** The session is not there any more: its actions are over, and so are its calls. */
export function compareGone(
  known: KnownSession,
  context: Pick<DiffContext, 'now' | 'seen'>,
): Omit<Reading, 'hint'> {
  const summary = summaryOf(known.session)
  const facts = known.actions.map((action) =>
    stateFact(
      'action.resolved',
      `action.resolved/${action.callId}`,
      [action.callId],
      known.session.id,
      actionData(action, summary),
      context,
    ),
  )
  const { id } = known.session
  facts.push(
    stateFact('session.deleted', `session.deleted/${id}`, [id], id, { session: known.session.raw }, context),
  )
  return {
    sessionId: id,
    revision: known.revision,
    session: null,
    baseline: known.baseline,
    atRest: true,
    turns: [],
    opened: [],
    resolved: known.actions.map(({ callId }) => callId),
    newCalls: [],
    facts,
    at: context.now,
  }
}

function byAge(a: Turn, b: Turn): number {
  return (a.createdAt ?? 0) - (b.createdAt ?? 0) || (a.startedAt ?? Infinity) - (b.startedAt ?? Infinity)
}

/** A run that could not start, of a session that had failed before: only its error is new. */
function failedAgain(known: KnownSession, session: Session, errorItem: JsonObject | null): boolean {
  if (session.status !== 'failed' || known.status !== 'failed' || errorItem === null) return false
  return session.updatedAt > known.updatedAt && (numberOf(errorItem.created_at) ?? 0) > known.updatedAt
}

interface TurnChanges {
  started: Turn[]
  ended: Turn[]
  settled: Turn[]
  changed: KnownTurn[]
  /** Every turn that is not known to be settled from before, as it is now. */
  all: KnownTurn[]
  waitUntil: number | null
}

function compareTurns(
  known: readonly KnownTurn[],
  read: readonly Turn[],
  baseline: number,
  context: DiffContext,
  finalSince: ReadonlyMap<string, number>,
): TurnChanges {
  const before = new Map(known.map((entry) => [entry.turn.id, entry]))
  const changes: TurnChanges = { started: [], ended: [], settled: [], changed: [], all: [], waitUntil: null }
  const seen = new Set<string>()
  // Lists come with the newest first; turns of the same millisecond keep that order, turned round.
  for (const turn of read.toReversed().sort(byAge)) {
    if (seen.has(turn.id)) continue
    seen.add(turn.id)
    const old = before.get(turn.id)
    if (old?.settled === true) continue
    const final = isFinal(turn)
    // A reading that hung shows the turn as it was.
    if (old?.read === true && old.final && !final) {
      changes.all.push(old)
      continue
    }
    const settled = isSettled(turn)
    // It was over before we came.
    const over = turn.completedAt ?? turn.createdAt
    const silent = old === undefined && settled && over !== null && over <= baseline
    const next: KnownTurn = {
      turn,
      read: true,
      final,
      settled,
      endedFrameAt: old?.endedFrameAt ?? null,
      finalReadAt: old?.finalReadAt ?? (final ? (finalSince.get(turn.id) ?? context.steady) : null),
      finalFact: final,
    }
    changes.all.push(next)
    changes.changed.push(next)
    if (silent) continue
    if (old?.read !== true) changes.started.push(turn)
    if (final && old?.finalFact !== true) {
      changes.ended.push(turn)
      const { connected, ms } = context.frameWait
      const until = (next.finalReadAt ?? context.steady) + ms
      if (connected && next.endedFrameAt === null && until > context.steady) {
        changes.waitUntil = Math.max(changes.waitUntil ?? until, until)
      }
    }
    if (settled) changes.settled.push(turn)
  }
  for (const entry of known)
    if (!seen.has(entry.turn.id) && !entry.settled && entry.read) changes.all.push(entry)
  return changes
}

/** Calls of tools that we run. */
export function callsOf(session: Session, { tools, now }: Pick<DiffContext, 'tools' | 'now'>): Call[] {
  return session.actions.flatMap((action): Call[] => {
    if (action.type !== 'function_call' || action.name === null || !tools.has(action.name)) return []
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
