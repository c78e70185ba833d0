import { STATE_TYPES, type StoredFact } from '../../core/fact.ts'
import type { JsonObject } from '../../std/json.ts'
import type { Clock, Random } from '../../std/ports.ts'

const STATE = new Set<string>(STATE_TYPES)

/**
 * A made-up fact of a type, for a test of a handler. It is never stored. Its id begins with `evt_test_`, and the sessions,
 * turns and calls that it names do not exist. Members of `data` replace those of the sample.
 */
export function sampleFact(
  type: string,
  data: JsonObject,
  ports: { clock: Pick<Clock, 'now'>; random: Pick<Random, 'hex'> },
): StoredFact {
  const at = ports.clock.now()
  return {
    pos: 0,
    id: `evt_test_${ports.random.hex(8)}`,
    type,
    sessionId: 'session_test',
    turnId: null,
    at,
    // The data of a state fact is sent unchanged, so the sample is one.
    family: 'state',
    seq: null,
    body: JSON.stringify({ ...sampleData(type, at), ...data }),
    seen: {},
    subject: null,
  }
}

function sampleData(type: string, at: number): JsonObject {
  const [family = '', word = ''] = type.split('.')
  const session = { title: 'Test', metadata: {}, status: 'idle' }
  if (!STATE.has(type)) return { payload: { text: 'Test' }, internal_type: null, seq: null, session }
  if (family === 'turn') return { turn: turn(word, at), ...settled(word), session }
  if (family === 'action') return { action: action(at), session }
  if (family === 'call') return { call: call(word, at), session }
  return {
    session: { ...session, id: 'session_test', status: statusOf(word), created_at: at, updated_at: at },
  }
}

/** A session that was just created or deleted is idle in the sample. */
function statusOf(word: string): string {
  return word === 'created' || word === 'deleted' ? 'idle' : word
}

function turn(word: string, at: number): JsonObject {
  const status = { started: 'working', failed: 'failed' }[word] ?? 'completed'
  const over = word !== 'started'
  return {
    id: 'turn_test',
    session_id: 'session_test',
    status,
    created_at: at - 2000,
    started_at: at - 1000,
    completed_at: over ? at : null,
    artifacts: over ? 'ready' : null,
  }
}

function settled(word: string): JsonObject {
  return word === 'settled' ? { artifacts: [], artifacts_skipped: [] } : {}
}

function action(at: number): JsonObject {
  return {
    type: 'question',
    call_id: 'call_test',
    turn_id: 'turn_test',
    question: 'Which colour?',
    created_at: at,
    expires_at: null,
  }
}

function call(outcome: string, at: number): JsonObject {
  return {
    call_id: 'call_test',
    name: 'test',
    turn_id: 'turn_test',
    state: outcome,
    outcome: outcome === 'answered' ? 'delivered' : outcome,
    attempts: 1,
    error: null,
    answered_with: outcome === 'failed' ? 'error' : 'output',
    created_at: at - 1000,
    expires_at: null,
    received_at: at - 1000,
    started_at: at - 900,
    finished_at: at - 100,
    ended_at: at,
  }
}
