import { stateFactId, type Fact, type Seen, type StateType } from '../../core/fact.ts'
import { isObject, stringOf, writeJson, type Json, type JsonObject } from '../../std/json.ts'
import type { Action, SessionSummary, Turn } from '../../core/resource.ts'

export function endType(turn: Turn): 'turn.completed' | 'turn.failed' | 'turn.ended' {
  if (turn.status === 'completed') return 'turn.completed'
  return turn.status === 'failed' ? 'turn.failed' : 'turn.ended'
}

/** A fact that a reading made. `key` is its natural key, `subject` what a channel may have claimed to have seen. */
export function stateFact(
  type: StateType,
  subject: string,
  key: (string | number)[],
  sessionId: string,
  data: JsonObject,
  context: { now: number; seen: Seen },
): Fact {
  return {
    id: stateFactId(type, ...key),
    type,
    sessionId,
    turnId: turnIdOf(data),
    at: context.now,
    family: 'state',
    seq: null,
    body: writeJson(data),
    seen: context.seen,
    subject,
  }
}

function turnIdOf({ turn, action }: JsonObject): string | null {
  if (isObject(turn)) return stringOf(turn.id)
  return isObject(action) ? stringOf(action.turn_id) : null
}

export function turnData(turn: Turn, session: SessionSummary): JsonObject {
  return { turn: turn.raw, session: { ...session } }
}

/** The fields of an artifact are not shown: its turn is where one of these names it. */
function turnOf({ turn_id, turnId, turn }: JsonObject): string | null {
  return stringOf(turn_id) ?? stringOf(turnId) ?? stringOf(turn)
}

/** Artifacts that name a turn are told apart by it; what else an artifact carries is not shown. */
export function settledData(
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

/** The objects of a list; `turn` has the value as the service gave it. */
function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

export function actionData(action: Action, session: SessionSummary): JsonObject {
  return { action: action.raw, session: { ...session } }
}
