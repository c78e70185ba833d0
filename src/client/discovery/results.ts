import type { Discovery, OperationName } from './discovery.ts'
import type { RouteOverrides } from './route.ts'

/** What discovery looks for because the interface leaves it open, and what its absence costs. */
export interface DiscoveryResult {
  name: string
  /** What was found, for people; null: the description has none. */
  found: string | null
  /** What is off, or works in another way, without it. */
  without: string
  /** The key of `service.routes` that gives it; null: none does. */
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

/** One row a result. The log, `check` and `/api/status` all show these. */
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
    without: 'an answer that was not delivered is reported, and not sent as a fresh turn',
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
    without: 'a POST whose reply is lost is read for before it is sent again',
    override: 'idempotency_header',
  },
  {
    name: 'rate headers',
    find: ({ rateHeaders: { remaining, bucket } }) =>
      remaining === null && bucket === null
        ? null
        : [remaining, bucket].filter((one) => one !== null).join(', '),
    without: 'what is left of the rate is not known: it shows only when the service refuses',
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
