import { LabelValues } from './label.ts'
import type { Meter, Rows } from './meter.ts'
import type { Snapshot } from './snapshot.ts'

const STATUSES = ['idle', 'working', 'requires_action', 'failed']
const ACTIONS = ['function_call', 'approval', 'question']

export interface StateSources {
  /** The most concurrent sessions of the organization; null: not known. */
  slotsLimit?: () => number | null
  /** Milliseconds since the epoch; null: the service does not report it. */
  tokenExpiresAt?: () => number | null
  /** Whether the service accepts our token; null: not known yet. */
  tokenAccepted?: () => boolean | null
  /** The service's clock minus ours, milliseconds. */
  clockOffset?: () => number | null
  /** Whether this replica holds the stream and the sweep. */
  leader?: () => boolean
}

/** Metrics of the current state, read from the store at each scrape. */
export function stateMetrics(
  meter: Meter,
  snapshot: () => Promise<Snapshot | null>,
  sources: StateSources,
): void {
  // A count that cannot be read is not zero: the series is absent.
  meter.gauges(
    'sessions',
    'Sessions that exist, by status.',
    'status',
    async () => {
      const known = await snapshot()
      return known === null ? [] : withZeros(STATUSES, Object.entries(known.counts.sessions))
    },
    undefined,
    new LabelValues(STATUSES, 20),
  )
  const actions = async () => Object.entries((await snapshot())?.counts.actions ?? {})
  meter.gauges(
    'required_actions',
    'Actions that sessions wait for, by type.',
    'type',
    async () => {
      if ((await snapshot()) === null) return []
      const counts = (await actions()).map(([type, { count }]) => [type, count] as const)
      return withZeros(ACTIONS, counts)
    },
    undefined,
    new LabelValues(ACTIONS, 20),
  )
  meter.gauges(
    'required_action_oldest_timestamp_seconds',
    'When the oldest action that waits was created. Absent when none waits.',
    'type',
    async () =>
      (await actions()).flatMap(([type, { oldest }]) =>
        oldest === null ? [] : [[type, oldest / 1000] as const],
      ),
    Math.min,
    new LabelValues(ACTIONS, 20),
  )
  meter.gauge(
    'artifact_oldest_pending_timestamp_seconds',
    'When the oldest turn was created that is over but waits for artifacts. Absent if none.',
    async () => {
      const oldest = (await snapshot())?.counts.artifactsPendingSince ?? null
      return oldest === null ? null : oldest / 1000
    },
  )
  meter.gauge(
    'session_slots_used',
    'Session slots in use: one for each session of the organization that is not deleted.',
    async () => {
      const counts = (await snapshot())?.counts
      if (counts === undefined) return null
      return Object.values(counts.sessions).reduce((sum, count) => sum + count, counts.foreignSessions)
    },
  )
  meter.gauge(
    'sessions_foreign',
    'Sessions of the organization that are outside the scope.',
    async () => (await snapshot())?.counts.foreignSessions ?? null,
  )
  meter.gauge(
    'stream_frames_held',
    'Frames that wait until a read shows whether their session is in the scope.',
    async () => (await snapshot())?.counts.heldFrames ?? null,
  )
  meter.gauge(
    'session_slots_limit',
    'Session slots that the organization has, as the configuration says.',
    () => (sources.slotsLimit === undefined ? null : sources.slotsLimit()),
  )
  meter.gauge(
    'token_expiry_timestamp_seconds',
    'When the service token expires. Absent when not known.',
    () => {
      const at = sources.tokenExpiresAt?.() ?? null
      return at === null ? null : at / 1000
    },
  )
  meter.gauge(
    'service_clock_offset_seconds',
    "The service's clock less ours, by the dates of its answers. Absent when not known.",
    () => {
      const offset = sources.clockOffset?.() ?? null
      return offset === null ? null : offset / 1000
    },
  )
  meter.gauge(
    'token_accepted',
    '1 while the service takes the service token, 0 once it has rejected it. Absent when it was not asked yet.',
    () => {
      const accepted = sources.tokenAccepted?.() ?? null
      return accepted === null ? null : Number(accepted)
    },
  )
  meter.gauge('leader', '1 on the replica that holds the stream and the sweep.', () =>
    Number(sources.leader?.() ?? true),
  )
  const unread = async () => (await snapshot())?.counts.unread ?? null
  meter.gauge(
    'read_queue_depth',
    'Sessions, and reads of the list of sessions, that a channel reported and that are pending.',
    async () => (await unread())?.count ?? null,
  )
  meter.gauge(
    'read_oldest_pending_timestamp_seconds',
    'When a channel reported the oldest of them. Absent when there are none.',
    async () => {
      const oldest = (await unread())?.oldest ?? null
      return oldest === null ? null : oldest / 1000
    },
  )
  meter.gauge('store_readable', '1 while these metrics can be read from the store.', async () =>
    Number((await snapshot()) !== null),
  )
  meter.gauge('store_bytes', 'Size of the store.', async () => (await snapshot())?.counts.bytes ?? null)
}

function withZeros(known: readonly string[], rows: readonly (readonly [string, number])[]): Rows {
  return [...known.map((value) => [value, 0] as const), ...rows]
}
