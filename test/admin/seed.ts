import { newCall, type Call } from '../../src/core/call.ts'
import { stateFactId, streamFactId, type Fact } from '../../src/core/fact.ts'
import type { JsonObject } from '../../src/std/json.ts'
import type { Clock, Log } from '../../src/std/ports.ts'
import type { Committed, KnownTurn, Reading, Store } from '../../src/core/store.ts'
import { parseAction, parseSession, parseTurn } from '../../src/core/wire.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { systemClock } from '../../src/system/clock.ts'

export const clock: Clock = systemClock()

/** Keeps what was logged, for a test to look at. */
export function memoryLog(): Log & { lines: { level: string; details: object; message: string }[] } {
  const lines: { level: string; details: object; message: string }[] = []
  const at = (level: string) => (details: object, message: string) =>
    void lines.push({ level, details, message })
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), lines }
  return { ...log, child: () => ({ ...log, child: () => memoryLog() }) }
}

export function openStore(
  path = ':memory:',
  onCommit?: (seconds: number) => void,
  given: Clock = clock,
): Store {
  return openSqliteStore({
    path,
    clock: given,
    log: memoryLog(),
    ...(onCommit === undefined ? {} : { onCommit }),
  })
}

export function sessionRaw(id: string, fields: JsonObject = {}): JsonObject {
  return {
    object: 'session',
    id,
    status: 'idle',
    created_at: 1_700_000_000_000,
    updated_at: 1_700_000_001_000,
    title: `title of ${id}`,
    metadata: { order: '42' },
    required_actions: [],
    ...fields,
  }
}

export function turnRaw(id: string, sessionId: string, fields: JsonObject = {}): JsonObject {
  return {
    object: 'turn',
    id,
    session_id: sessionId,
    status: 'completed',
    created_at: 1_700_000_000_000,
    started_at: 1_700_000_001_000,
    completed_at: 1_700_000_008_000,
    artifacts: 'ready',
    later_field: { kept: true },
    ...fields,
  }
}

export function actionRaw(callId: string, fields: JsonObject = {}): JsonObject {
  return {
    type: 'function_call',
    turn_id: 'turn_1',
    call_id: callId,
    name: 'lookup_order',
    arguments: { order_id: '42' },
    created_at: 1_700_000_002_000,
    expires_at: null,
    ...fields,
  }
}

/** The reports of a relay about its readers: their number, and the counters by name. */
export function relayLedger() {
  const counts: Record<string, number> = {}
  const add = (name: string, by: number): void => {
    counts[name] = (counts[name] ?? 0) + by
  }
  const ledger = {
    readers: 0,
    counts,
    relayReaders: (count: number): void => {
      ledger.readers = count
    },
    relayFrames: (source: string, count: number) => add(source, count),
    relayEnded: (outcome: string) => add(outcome, 1),
  }
  return ledger
}

/** A reading of a session as the reconciler would write it. */
export function readingOf(
  session: JsonObject,
  extra: {
    turns?: JsonObject[]
    /** Whether the artifacts of the turns are final. */
    settled?: boolean
    calls?: Call[]
    facts?: Fact[]
    revision?: number
    at?: number
  } = {},
): Reading {
  const parsed = parseSession(session)
  if (parsed === null) throw new Error('the seed is no session')
  const turns = (extra.turns ?? []).map((raw): KnownTurn => {
    const turn = parseTurn(raw)
    if (turn === null) throw new Error('the seed is no turn')
    return {
      turn,
      read: true,
      final: true,
      settled: extra.settled ?? true,
      endedFrameAt: null,
      finalFor: null,
      finalFact: true,
    }
  })
  return {
    sessionId: parsed.id,
    revision: extra.revision ?? null,
    session: parsed,
    baseline: 0,
    atRest: parsed.actions.length === 0,
    turns,
    opened: parsed.actions.flatMap(({ raw }) => parseAction(raw) ?? []),
    resolved: [],
    newCalls: extra.calls ?? [],
    facts: extra.facts ?? [],
    at: extra.at ?? clock.now(),
    hint: { claim: null, lookAfter: null, scope: 'session' },
  }
}

export function frameFact(seq: string, sessionId: string, fields: Partial<Fact> = {}): Fact {
  const type = fields.type ?? 'agent.message'
  return {
    id: streamFactId(seq, sessionId),
    type,
    sessionId,
    turnId: null,
    at: clock.now(),
    family: 'transcript',
    seq,
    body: `{"type":"${type}","internal_type":"msg","seq":${seq},"payload":{"session_id":"${sessionId}","text":"<b>hi</b>"}}`,
    seen: { stream: clock.now() },
    subject: null,
    ...fields,
  }
}

export function turnFact(type: string, turn: JsonObject, fields: Partial<Fact> = {}): Fact {
  const sessionId = text(turn['session_id'])
  return {
    id: stateFactId(type, text(turn['id'])),
    type,
    sessionId,
    turnId: text(turn['id']),
    at: clock.now(),
    family: 'state',
    seq: null,
    body: JSON.stringify({ turn, session: { title: null, metadata: {}, status: 'idle' } }),
    seen: { webhook: clock.now() },
    subject: null,
    ...fields,
  }
}

export function callOf(callId: string, sessionId: string, fields: Partial<Call> = {}): Call {
  return {
    ...newCall({
      callId,
      sessionId,
      turnId: 'turn_1',
      name: 'lookup_order',
      action: actionRaw(callId),
      createdAt: 1_700_000_002_000,
      expiresAt: null,
      receivedAt: clock.now(),
    }),
    ...fields,
  }
}

/** Plays the dispatcher's part: the first delivery of `committed` to `handler` ends with `result`. */
export async function acknowledgeFirst(
  store: Store,
  committed: Committed,
  handler: string,
  result: 'delivered' | 'dead' | 'retry',
): Promise<void> {
  const grown = committed.lanes.find(({ lane }) => lane.handler === handler)
  const [delivery] = grown?.deliveries ?? []
  if (grown === undefined || delivery === undefined) throw new Error('nothing is pending')
  const outcome = result === 'delivered' ? { status: 200 } : { error: 'refused' }
  const attempt = { at: clock.now(), ms: 3, ...outcome }
  const ack = {
    lane: grown.lane,
    pos: delivery.fact.pos,
    result,
    attempts: 1,
    attempt,
    after: result === 'retry' ? 5000 : null,
  }
  await store.log.commit({ acks: () => [ack] })
}

/** A value that a test knows to be a text. */
export function text(value: unknown): string {
  if (typeof value !== 'string') throw new Error(`a text was expected, not ${JSON.stringify(value)}`)
  return value
}
