import type { Discovery, OperationName } from './discovery.ts'
import type { RouteOverrides } from './route.ts'

/** A detail that the interface leaves open and that discovery searches, and what does not work without it. */
export interface DiscoveryResult {
  name: string
  /** What was found, for people; null: the service's description does not have it. */
  found: string | null
  /** What does not work if it was not found. */
  without: string
  /** The key of `service.routes` that sets it; null: there is none. */
  override: keyof RouteOverrides | null
}

interface Row {
  name: string
  find: (discovery: Discovery) => string | null
  without: string
  override: keyof RouteOverrides | null
}

const route =
  (operation: OperationName): Row['find'] =>
  ({ routes }) => {
    const found = routes[operation]
    return found.found ? `${found.method} ${found.path}` : null
  }

/** One row per result. The log, `check` and `/api/status` all show these. */
const ROWS: readonly Row[] = [
  {
    name: 'answer route',
    find: route('answer'),
    without: 'no tool can answer',
    override: 'answer_path',
  },
  {
    name: 'message route',
    find: route('sendMessage'),
    without: 'an answer that was not delivered is reported, and not sent as a new message',
    override: 'message_path',
  },
  {
    name: 'single turn',
    find: route('readTurn'),
    without: 'turns are read from the list of their session',
    override: 'turn_path',
  },
  {
    name: 'stream of one session',
    find: route('sessionStream'),
    without: 'nothing: the sidecar reads the stream of the organization',
    override: 'session_stream_path',
  },
  {
    name: 'list of artifacts',
    find: route('listArtifacts'),
    without: 'turn.settled has no list of artifacts',
    override: null,
  },
  {
    name: 'idempotency header',
    find: ({ idempotencyHeader }) => idempotencyHeader?.name ?? null,
    without: 'after a lost reply the sidecar reads the session before it sends a POST again',
    override: 'idempotency_header',
  },
  {
    name: 'rate headers',
    find: ({ rateHeaders: { remaining, bucket } }) =>
      remaining === null && bucket === null
        ? null
        : [remaining, bucket].filter((one) => one !== null).join(', '),
    without: 'the remaining rate is unknown until the service refuses a request',
    override: null,
  },
]

export function resultsOf(discovery: Discovery): DiscoveryResult[] {
  return ROWS.map(({ name, find, without, override }) => ({
    name,
    found: find(discovery),
    without,
    override,
  }))
}
