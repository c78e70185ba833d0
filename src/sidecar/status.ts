import { adviceOn } from './admin/advice.ts'
import type { StatusReport } from './admin/routes/status.ts'
import type { Config } from './config/config.ts'
import type { ChannelStatus } from '../core/observer.ts'
import type { Health } from '../core/resource.ts'
import type { StoreReader } from '../core/store-reader.ts'
import { ANY_FUNCTION } from '../core/tool.ts'
import type { ServiceClient } from '../client/service.ts'
import { resultsOf } from '../client/discovery/results.ts'
import type { Engine } from './engine.ts'
import type { Throughput } from './throughput.ts'
import type { Writes } from './writes.ts'

/** Functions without a tool that are listed: their names come from the agents' side, and may be many. */
const FUNCTIONS = 20

/** How everything fares, for `/api/status`. */
export async function reportStatus(parts: {
  version: string
  startedAt: number
  service: ServiceClient
  engine: Engine
  store: StoreReader
  webhook: ChannelStatus
  lag: (channel: 'stream' | 'webhook' | 'poll') => number | null
  health: Health | null
  configured: Pick<Config['service'], 'baseUrl' | 'consoleUrl' | 'sessionSlots' | 'tokenExpiresAt'>
  throughput: Throughput
  writes: Writes
  /** The configured ones. */
  tools: readonly { name: string }[]
}): Promise<StatusReport> {
  const { service, engine, configured } = parts
  const counts = await parts.store.counts()
  const names = parts.tools.map(({ name }) => name)
  const functions = names.includes(ANY_FUNCTION) ? [] : await parts.store.functionsBeside(names, FUNCTIONS)
  const perHandler = Object.values(counts.deliveries)
  const discovery = service.discovery()
  const { routes } = discovery
  const channel = (name: 'stream' | 'webhook' | 'poll', status: ChannelStatus) => ({
    state: status.state,
    since: status.since,
    last_error: status.lastError,
    last_event_at: status.lastEventAt,
    lag_seconds: parts.lag(name),
    last_seq: status.lastSeq,
  })
  return {
    version: parts.version,
    started_at: parts.startedAt,
    leader: true,
    channels: {
      stream: channel('stream', engine.stream?.status() ?? disabled(parts.startedAt)),
      webhook: channel('webhook', parts.webhook),
      poll: channel('poll', engine.poll?.status() ?? disabled(parts.startedAt)),
    },
    routes: Object.entries(routes).map(([operation, route]) =>
      route.found
        ? { operation, method: route.method, path: route.path, how: route.how, reason: null }
        : { operation, method: null, path: null, how: 'missing' as const, reason: route.reason },
    ),
    discovery: resultsOf(discovery),
    queues: {
      deliveries_pending: perHandler.reduce((sum, { pending }) => sum + pending, 0),
      deliveries_dead: perHandler.reduce((sum, { dead }) => sum + dead, 0),
      calls_open: counts.openCalls,
      sessions_to_read: counts.dirty,
    },
    needs_action: functions.map(({ name, calls, oldest }) => ({
      function: name,
      calls,
      oldest_at: oldest,
      advice: adviceOn(name),
    })),
    throughput: parts.throughput.report(),
    service: {
      base_url: configured.baseUrl,
      console_url: configured.consoleUrl,
      held_until: service.heldUntil(),
    },
    store: parts.writes.report(),
    slots: {
      used: Object.values(counts.sessions).reduce((sum, count) => sum + count, counts.foreignSessions),
      limit: configured.sessionSlots,
    },
    token: {
      state: service.authorized() ? (parts.health === null ? 'unknown' : 'accepted') : 'rejected',
      scopes: parts.health?.scopes ?? null,
      expires_at: configured.tokenExpiresAt,
    },
  }
}

export function disabled(since: number): ChannelStatus {
  return { state: 'disabled', since, lastError: null, lastEventAt: null, lastSeq: null }
}
