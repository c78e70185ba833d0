import { isObject, stringOf } from '../../std/json.ts'
import type { LedgerView } from '../../emulator/index.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'

/** An event that an app accepted. */
export interface Received {
  event: { type: string; session_id: string | null; data: object }
  times: number
}

/** Milliseconds after the last message until everything must be delivered and answered. */
const PATIENCE = 60_000
const LOOK_INTERVAL = 200

/** Compares the emulator's ledger with the callbacks of the app. */
export interface Comparison {
  /** Facts that the sidecar made, and those that the app accepted. */
  facts: { made: number; delivered: number }
  /**
   * Facts that the ledger expects, and those that the app did not get. Session statuses depend on
   * when they were read.
   */
  expected: string[]
  missing: string[]
  /** Repeated callbacks. */
  repeated: number
  calls: { asked: number; answered: number }
  /** Work still under way: turns, unresolved actions. */
  underWay: string[]
}

export function isComplete({ facts, missing, calls, underWay }: Comparison): boolean {
  return (
    facts.delivered === facts.made &&
    missing.length === 0 &&
    underWay.length === 0 &&
    calls.answered === calls.asked
  )
}

/** Waits until every event was delivered, answered and shown, or the time is over. */
export async function settled(
  baseUrl: string,
  received: ReadonlyMap<string, Received>,
  tally: { facts: number; delivered: number },
): Promise<Comparison> {
  const deadline = performance.now() + PATIENCE
  for (;;) {
    // The true events, from the emulator's own route.
    const { body } = await request(`${baseUrl}/_emulator/ledger`)
    const comparison = compare((await body.json()) as LedgerView, received, tally)
    if (isComplete(comparison) || performance.now() > deadline) return comparison
    await sleep(LOOK_INTERVAL)
  }
}

/**
 * Waits until the app got the action, for at most a minute. On a busy machine the sidecar first read a session after
 * 1.2 s, when the person had answered: no fact reports such an action, and the demonstration missed it.
 */
export async function shown(received: ReadonlyMap<string, Received>, callId: string): Promise<void> {
  const deadline = performance.now() + PATIENCE
  const isIt = ({ event: { type, data } }: Received): boolean =>
    type === 'action.required' && idIn(data, 'action', 'call_id') === callId
  while (!received.values().some(isIt) && performance.now() < deadline) await sleep(LOOK_INTERVAL)
}

export function compare(
  ledger: Pick<LedgerView, 'events' | 'sessions' | 'turns' | 'actions' | 'answers'>,
  received: ReadonlyMap<string, Received>,
  tally: { facts: number; delivered: number },
): Comparison {
  const delivered = new Set([...received.values()].map(({ event }) => keyOf(event)))
  const expected = [
    ...ledger.events.map(({ seq, type }) => `transcript ${seq} ${type}`),
    ...ledger.sessions.map(({ id }) => `session.created ${id}`),
    ...ledger.sessions.filter(({ status }) => status === 'failed').map(({ id }) => `session.failed ${id}`),
    ...ledger.turns.flatMap(({ id, status, artifacts }) => [
      `turn.started ${id}`,
      ...(status === 'working' ? [] : [`turn.${finalWord(status)} ${id}`]),
      ...(SETTLED.has(artifacts ?? '') ? [`turn.settled ${id}`] : []),
    ]),
    ...ledger.actions.map(({ call_id }) => `action.required ${call_id}`),
    ...ledger.actions
      .filter(({ resolved_at }) => resolved_at !== null)
      .map(({ call_id }) => `action.resolved ${call_id}`),
    ...ledger.answers.map(({ call_id }) => `call.answered ${call_id}`),
  ]
  const calls = ledger.actions.filter(({ type }) => type === 'function_call')
  const answered = new Set(ledger.answers.map(({ call_id }) => call_id))
  return {
    facts: { made: tally.facts, delivered: tally.delivered },
    expected,
    missing: expected.filter((fact) => !delivered.has(withoutType(fact))),
    repeated: [...received.values()].filter(({ times }) => times > 1).length,
    calls: { asked: calls.length, answered: calls.filter(({ call_id }) => answered.has(call_id)).length },
    underWay: [
      ...ledger.turns.filter(({ artifacts }) => !SETTLED.has(artifacts ?? '')).map(({ id }) => id),
      ...ledger.actions.filter(({ resolved_at }) => resolved_at === null).map(({ call_id }) => call_id),
    ],
  }
}

const SETTLED = new Set(['ready', 'partial', 'failed'])

function finalWord(status: string): string {
  return status === 'completed' || status === 'failed' ? status : 'ended'
}

/**
 * The subject of a callback, in the form of `expected`. Its type may be unknown to this version.
 */
function keyOf({ type, session_id: sessionId, data }: Received['event']): string {
  const seq = 'seq' in data ? textOf(data.seq) : ''
  if (seq !== '') return `transcript ${seq}`
  const id =
    idIn(data, 'turn', 'id') ?? idIn(data, 'action', 'call_id') ?? idIn(data, 'call', 'call_id') ?? sessionId
  // A call whose tool failed is answered, too: with the configured error text.
  return `${type === 'call.failed' ? 'call.answered' : type} ${id}`
}

function textOf(seq: unknown): string {
  return typeof seq === 'number' || typeof seq === 'string' ? String(seq) : ''
}

function idIn(data: object, resource: string, key: string): string | null {
  const found: unknown = Object.hasOwn(data, resource) ? Reflect.get(data, resource) : null
  return isObject(found) ? stringOf(found[key]) : null
}

/**
 * A transcript fact is identified by its seq alone, because the type of the fact may differ from
 * the frame's.
 */
function withoutType(fact: string): string {
  return fact.startsWith('transcript ') ? fact.split(' ', 2).join(' ') : fact
}
