import type { Fact } from '../../../core/fact.ts'
import { isObject } from '../../../std/json.ts'
import type { Turn } from '../../../core/resource.ts'
import { parseTurn } from '../../../core/wire.ts'
import { AGE } from './buckets.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'

/** What a session came to when work in it stopped. */
const SESSION_OUTCOMES = ['idle', 'requires_action', 'failed']
const TURN_OUTCOMES = ['completed', 'failed']
const ARTIFACT_STATES = ['ready', 'partial', 'failed']

/** What became of turns and sessions, counted from their facts. @returns what a state fact is handed to. */
export function outcomeMetrics(meter: Meter): (fact: Pick<Fact, 'type' | 'sessionId' | 'body'>) => void {
  const outcome = new LabelValues(TURN_OUTCOMES, 20)
  const sessions = meter.counter(
    'session_outcomes_total',
    'Times that a session became idle, failed, or began to require action, by status.',
    {
      status: new LabelValues(SESSION_OUTCOMES, 20),
    },
  )
  const turns = meter.counter('turns_total', 'Turns that ended, by their final status.', { outcome })
  const durations = meter.histogram(
    'turn_duration_seconds',
    'From the start of a turn to its end.',
    'outcome',
    outcome,
    AGE,
  )
  const artifacts = meter.counter(
    'turn_artifacts_total',
    'Turns that settled, by the state of their artifacts.',
    {
      state: new LabelValues(ARTIFACT_STATES, 20),
    },
  )
  for (const known of SESSION_OUTCOMES) sessions.expect(known)
  for (const known of TURN_OUTCOMES) turns.expect(known)
  for (const known of ARTIFACT_STATES) artifacts.expect(known)

  const end = (turn: Turn): void => {
    turns.add(turn.status)
    const started = turn.startedAt ?? turn.createdAt
    if (started !== null && turn.completedAt !== null) {
      durations.observe(turn.status, (turn.completedAt - started) / 1000)
    }
  }

  return (fact) => {
    switch (fact.type) {
      case 'session.idle':
      case 'session.requires_action':
      case 'session.failed':
        sessions.add(fact.type.slice('session.'.length))
        return
      case 'turn.completed':
      case 'turn.failed':
      case 'turn.ended': {
        const turn = turnOf(fact)
        if (turn !== null) end(turn)
        return
      }
      case 'turn.settled': {
        const state = turnOf(fact)?.artifacts ?? null
        if (state !== null) artifacts.add(state)
        return
      }
      default:
    }
  }
}

function turnOf(fact: Pick<Fact, 'sessionId' | 'body'>): Turn | null {
  try {
    const body: unknown = JSON.parse(fact.body)
    return isObject(body) ? parseTurn(body.turn, fact.sessionId ?? undefined) : null
  } catch {
    return null
  }
}
