import { isObject, stringOf } from '../../std/json.ts'
import type { LedgerView } from '../../emulator/index.ts'
import type { Received } from './app.ts'

/** What the emulator knows to have happened against what the app was told. */
export interface Comparison {
  /** Facts that the sidecar made, and those that the app took. */
  facts: { made: number; delivered: number }
  /** What the ledger says must be among them, and what the app did not get. Session statuses depend on when they were read. */
  expected: string[]
  missing: string[]
  /** Callbacks that came more than once. */
  repeated: number
  calls: { asked: number; answered: number }
  /** Things still under way: turns, actions that nobody resolved. */
  underWay: string[]
}

export function compare(
  ledger: Pick<LedgerView, 'events' | 'sessions' | 'turns' | 'actions' | 'answers'>,
  received: ReadonlyMap<string, Received>,
  tally: { facts: number; delivered: number },
): Comparison {
  const told = new Set([...received.values()].map(({ event }) => keyOf(event)))
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
    missing: expected.filter((fact) => !told.has(withoutType(fact))),
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

/** What a callback is about, in the words of `expected`. Its type may be one that this version does not know. */
function keyOf({ type, session_id: sessionId, data }: Received['event']): string {
  const seq = 'seq' in data ? textOf(data.seq) : ''
  if (seq !== '') return `transcript ${seq}`
  const id =
    idIn(data, 'turn', 'id') ?? idIn(data, 'action', 'call_id') ?? idIn(data, 'call', 'call_id') ?? sessionId
  // A tool that failed is answered, too: with the fixed error.
  return `${type === 'call.failed' ? 'call.answered' : type} ${id}`
}

function textOf(seq: unknown): string {
  return typeof seq === 'number' || typeof seq === 'string' ? String(seq) : ''
}

function idIn(data: object, resource: string, key: string): string | null {
  const found: unknown = Object.hasOwn(data, resource) ? Reflect.get(data, resource) : null
  return isObject(found) ? stringOf(found[key]) : null
}

/** A transcript fact is known by its seq alone: its name may have been changed on the way. */
function withoutType(fact: string): string {
  return fact.startsWith('transcript ') ? fact.split(' ', 2).join(' ') : fact
}
