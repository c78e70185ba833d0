import type { Observer, RelayOutcome } from '../../../core/observer.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'

const SOURCES = ['live', 'replay']
const OUTCOMES: readonly RelayOutcome[] = ['left', 'slow', 'replay_limit', 'failed', 'refused', 'stopped']

/** Who reads the stream from us. */
export function relayMetrics(meter: Meter): Pick<Observer, 'relayReaders' | 'relayFrames' | 'relayEnded'> {
  const frames = meter.counter(
    'relay_frames_sent_total',
    'Frames handed to readers of the relay, live or from the log.',
    { source: new LabelValues(SOURCES) },
  )
  const ended = meter.counter('relay_readers_ended_total', 'Readers of the relay that ended, by how.', {
    outcome: new LabelValues(OUTCOMES),
  })
  for (const source of SOURCES) frames.expect(source)
  for (const outcome of OUTCOMES) ended.expect(outcome)
  let readers = 0
  meter.gauge('relay_readers', 'Readers of the relay.', () => readers)
  return {
    relayReaders(count) {
      readers = count
    },
    relayFrames: (source, count) => frames.add(source, '', count),
    relayEnded: (outcome) => ended.add(outcome),
  }
}
