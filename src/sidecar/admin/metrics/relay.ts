import type { Observer, RelayOutcome } from '../../../core/observer.ts'
import type { Meter } from './meter.ts'

const SOURCES = ['live', 'replay']
const OUTCOMES: readonly RelayOutcome[] = ['left', 'slow', 'replay_limit', 'failed', 'refused', 'stopped']

/** The readers of the relay. */
export function relayMetrics(meter: Meter) {
  const frames = meter.counter(
    'relay_frames_sent_total',
    'Frames sent to readers of the relay, live or from the log.',
    { source: SOURCES },
  )
  const ended = meter.counter('relay_readers_ended_total', 'Readers of the relay that ended, by reason.', {
    outcome: OUTCOMES,
  })
  let readers = 0
  meter.gauge('relay_readers', 'Readers of the relay.', () => readers)
  return {
    relayReaders: (count) => void (readers = count),
    relayFrames: (source, count) => frames.add(source, '', count),
    relayEnded: (outcome) => ended.add(outcome),
  } satisfies Partial<Observer>
}
