import { WEBHOOK_OUTCOMES, type Observer } from '../../../core/observer.ts'
import { secondsOf, type Meter } from './meter.ts'

/** Metrics of the stream and the webhooks as transports. */
export function channelMetrics(meter: Meter) {
  const reconnects = meter.counter('stream_reconnects_total', 'Times that the stream was opened again.', {
    reason: [],
  })
  const frames = meter.counter('stream_events_total', 'Frames received, transient ones too.', { type: [] })
  const quarantined = meter.counter(
    'stream_frames_quarantined_total',
    'Frames that cannot be read: gaps in the transcript.',
  )
  const unattributed = meter.counter(
    'stream_frames_unattributed_total',
    'Frames dropped: their session was deleted before a read showed whether it is in the scope.',
  )
  const webhooks = meter.counter('webhooks_received_total', 'Webhook deliveries received.', {
    outcome: WEBHOOK_OUTCOMES,
  })

  let connected: boolean | null = null
  let lastFrameAt: number | null = null
  let seq: string | null = null
  let active: boolean | null = null
  meter.gauge(
    'stream_connected',
    '1 while the event stream is open. Absent when it is turned off.',
    () => connected,
  )
  meter.gauge('stream_last_event_timestamp_seconds', 'When the last frame came.', () =>
    secondsOf(lastFrameAt),
  )
  meter.gauge('stream_seq', 'The `seq` of the last frame that the sidecar stored.', () =>
    seq === null ? null : Number(seq),
  )
  meter.gauge(
    'webhook_subscription_active',
    '1 while the service sends webhooks to the sidecar.',
    () => active,
  )

  return {
    channel(channel, status) {
      if (channel !== 'stream') return
      connected = status.state === 'disabled' ? null : status.state === 'live'
      lastFrameAt = status.lastEventAt ?? lastFrameAt
      seq = status.lastSeq ?? seq
    },
    streamReconnect: (reason) => reconnects.add(reason),
    frame(frame) {
      frames.add(frame.type)
      lastFrameAt = frame.at
      if (frame.seq !== null) seq = frame.seq
    },
    quarantined: () => quarantined.add(),
    framesUnattributed: (count) => unattributed.add('', '', count),
    webhook: (outcome) => webhooks.add(outcome),
    subscription: (now) => void (active = now),
  } satisfies Partial<Observer>
}
