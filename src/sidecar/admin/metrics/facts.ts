import { CHANNELS, STATE_TYPES, type Channel, type Fact, type Seen } from '../../../core/fact.ts'
import type { Observer } from '../../../core/observer.ts'
import type { Turn } from '../../../core/resource.ts'
import { parseTurn } from '../../../core/wire.ts'
import { isObject } from '../../../std/json.ts'
import { AGE, WAIT } from './buckets.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'

/** The statuses of a session in which work has stopped. */
const SESSION_OUTCOMES = ['idle', 'requires_action', 'failed']
const TURN_OUTCOMES = ['completed', 'failed']
const ARTIFACT_STATES = ['ready', 'partial', 'failed']
/** The most values of a label whose words the service chooses, known and unknown ones together. */
const WORDS = 20

/** Metrics of facts, and of the channels that reported them. */
export function factMetrics(meter: Meter) {
  const facts = meter.counter('facts_total', 'Facts stored.', { type: STATE_TYPES })
  const firstSeen = meter.counter('fact_first_seen_total', 'Facts by the channel that reported them first.', {
    channel: CHANNELS,
  })
  const missed = meter.counter(
    'fact_missed_total',
    'Facts that a channel should have reported and did not within 10 minutes.',
    { channel: CHANNELS },
  )
  const lags = meter.histogram(
    'fact_lag_seconds',
    'Time from an event to the moment at which a channel reported it.',
    { channel: CHANNELS },
    WAIT,
  )
  const count = outcomeMetrics(meter)

  return {
    fact(fact, lag) {
      facts.add(fact.type)
      const first = firstOf(fact.seen)
      if (first !== null) {
        firstSeen.add(first)
        if (lag !== null) lags.count(lag, first)
      }
      if (fact.family === 'state') count(fact)
    },
    sighting: (sighting) => lags.count(sighting.lag, sighting.channel),
    missed: (event) => missed.add(event.channel),
  } satisfies Partial<Observer>
}

function firstOf(seen: Seen): Channel | null {
  let first: Channel | null = null
  let at = Infinity
  for (const channel of CHANNELS) {
    const time = seen[channel]
    if (time !== undefined && time < at) [first, at] = [channel, time]
  }
  return first
}

/** Outcomes of turns and sessions, counted from their facts. @returns a function that counts a state fact. */
function outcomeMetrics(meter: Meter): (fact: Pick<Fact, 'type' | 'sessionId' | 'body'>) => void {
  const outcome = new LabelValues(TURN_OUTCOMES, WORDS)
  const sessions = meter.counter(
    'session_outcomes_total',
    'Times that a session became idle, failed, or began to require action, by status.',
    { status: SESSION_OUTCOMES },
  )
  const turns = meter.counter('turns_total', 'Turns that ended, by their final status.', { outcome })
  const durations = meter.histogram(
    'turn_duration_seconds',
    'From the start of a turn to its end.',
    { outcome },
    AGE,
  )
  const artifacts = meter.counter(
    'turn_artifacts_total',
    'Turns that settled, by the state of their artifacts.',
    { state: new LabelValues(ARTIFACT_STATES, WORDS) },
  )

  const end = (turn: Turn): void => {
    turns.add(turn.status)
    const started = turn.startedAt ?? turn.createdAt
    if (started !== null && turn.completedAt !== null)
      durations.count((turn.completedAt - started) / 1000, turn.status)
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
