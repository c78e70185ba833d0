import { LabelValues } from './label.ts'
import { secondsOf, type Meter } from './meter.ts'
import type { Snapshot } from './snapshot.ts'

const STATUSES = ['idle', 'working', 'requires_action', 'failed']
const ACTIONS = ['function_call', 'approval', 'question']
/** The most values of a label whose words the service chooses, known and unknown ones together. */
const WORDS = 20

export interface StateSources {
  /** The most concurrent sessions of the organization; null: not known. */
  slotsLimit?: () => number | null
  /** Milliseconds since the epoch; null: the service does not report it. */
  tokenExpiresAt?: () => number | null
  /** Whether the service accepts our token; null: not known yet. */
  tokenAccepted?: () => boolean | null
  /** The service's clock minus ours, milliseconds. */
  clockOffset?: () => number | null
}

/** Metrics of the current state, read from the store at each scrape. */
export function stateMetrics(
  meter: Meter,
  snapshot: () => Promise<Snapshot | null>,
  sources: StateSources,
): void {
  const counts = async () => (await snapshot())?.counts
  meter.gauges(
    'sessions',
    'Sessions that exist, by status.',
    { status: new LabelValues(STATUSES, WORDS) },
    async () => {
      const known = await counts()
      return known === undefined ? [] : [...zeros(STATUSES), ...Object.entries(known.sessions)]
    },
  )
  const type = new LabelValues(ACTIONS, WORDS)
  const actions = async () => Object.entries((await counts())?.actions ?? {})
  meter.gauges('required_actions', 'Actions that sessions wait for, by type.', { type }, async () => {
    if ((await snapshot()) === null) return []
    return [...zeros(ACTIONS), ...(await actions()).map(([type, { count }]) => [type, count] as const)]
  })
  meter.lowest(
    'required_action_oldest_timestamp_seconds',
    'When the oldest open action was created. Absent if none is open.',
    { type },
    async () => (await actions()).map(([type, { oldest }]) => [type, secondsOf(oldest)]),
  )
  meter.gauge(
    'artifact_oldest_pending_timestamp_seconds',
    'Creation time of the oldest ended turn that waits for artifacts. Absent if none waits.',
    async () => secondsOf((await counts())?.artifactsPendingSince),
  )
  meter.gauge(
    'session_slots_used',
    'Session slots in use: one for each session of the organization that is not deleted.',
    async () => {
      const known = await counts()
      return known && Object.values(known.sessions).reduce((sum, count) => sum + count, known.foreignSessions)
    },
  )
  meter.gauge(
    'sessions_foreign',
    'Sessions of the organization that are outside the scope.',
    async () => (await counts())?.foreignSessions,
  )
  meter.gauge(
    'stream_frames_held',
    'Frames that wait until a read shows whether their session is in the scope.',
    async () => (await counts())?.heldFrames,
  )
  meter.gauge(
    'session_slots_limit',
    'Session slots that the organization has, as the configuration says.',
    () => sources.slotsLimit?.(),
  )
  meter.gauge(
    'token_expiry_timestamp_seconds',
    'When the service token expires. Absent when not known.',
    () => secondsOf(sources.tokenExpiresAt?.()),
  )
  meter.gauge(
    'service_clock_offset_seconds',
    'Clock of the service minus clock of this machine, by the `Date` of its responses. Absent if not known.',
    () => secondsOf(sources.clockOffset?.()),
  )
  meter.gauge(
    'token_accepted',
    '1 while the service accepts the token, 0 after it rejected it. Absent before the first request.',
    () => sources.tokenAccepted?.(),
  )
  meter.gauge(
    'read_queue_depth',
    'Pending reads: of sessions that a channel reported, and of the list of sessions.',
    async () => (await counts())?.unread.count,
  )
  meter.gauge(
    'read_oldest_pending_timestamp_seconds',
    'When a channel requested the oldest pending read. Absent if none is pending.',
    async () => secondsOf((await counts())?.unread.oldest),
  )
  meter.gauge('store_bytes', 'Size of the store.', async () => (await counts())?.bytes)
}

function zeros(known: readonly string[]): (readonly [string, number])[] {
  return known.map((value) => [value, 0])
}
