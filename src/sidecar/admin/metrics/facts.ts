import { CHANNELS, STATE_TYPES, type Channel, type Seen } from '../../../core/fact.ts'
import type { Observer } from '../../../core/observer.ts'
import { WAIT } from './buckets.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'
import { outcomeMetrics } from './outcomes.ts'

/** Metrics of facts, and of the channels that reported them. */
export function factMetrics(meter: Meter): Pick<Observer, 'fact' | 'sighting' | 'missed'> {
  const type = new LabelValues(STATE_TYPES)
  const facts = meter.counter('facts_total', 'Facts stored.', { type })
  const channel = new LabelValues(CHANNELS, CHANNELS.length)
  const firstSeen = meter.counter('fact_first_seen_total', 'Facts by the channel that reported them first.', {
    channel,
  })
  const missed = meter.counter(
    'fact_missed_total',
    'Facts that a channel should have reported and did not within 10 minutes.',
    { channel },
  )
  const lags = meter.histogram(
    'fact_lag_seconds',
    'From the event to the moment a channel reported it.',
    'channel',
    channel,
    WAIT,
  )
  const count = outcomeMetrics(meter)
  for (const known of STATE_TYPES) facts.expect(known)
  for (const known of CHANNELS) {
    firstSeen.expect(known)
    missed.expect(known)
  }

  return {
    fact(fact, lag) {
      facts.add(fact.type)
      const first = firstOf(fact.seen)
      if (first !== null) {
        firstSeen.add(first)
        if (lag !== null) lags.observe(first, lag)
      }
      if (fact.family === 'state') count(fact)
    },
    sighting: (sighting) => lags.observe(sighting.channel, sighting.lag),
    missed: (event) => missed.add(event.channel),
  }
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
