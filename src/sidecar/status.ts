import { adviceOn } from './admin/advice.ts'
import type { Readiness } from './admin/probes.ts'
import type { StatusReport } from './admin/routes/status.ts'
import type { Config } from './config/config.ts'
import type { Channel } from '../core/fact.ts'
import type { ChannelStatus, Observer } from '../core/observer.ts'
import type { Health } from '../core/resource.ts'
import type { StoreError } from '../core/store-error.ts'
import type { StoreReader } from '../core/store-reader.ts'
import type { Clock } from '../std/ports.ts'
import type { ServiceClient } from '../client/service.ts'
import type { Discovery } from '../client/discovery/discovery.ts'
import { resultsOf } from '../client/discovery/results.ts'
import type { NoRoute } from '../client/discovery/route.ts'
import { channelOf, emptyMinute, MINUTES, minutesOf, type Minute, type Peers } from './peers.ts'
import { refusalOf } from './store.ts'

/** The most functions without a tool that are listed: the agents choose the names, so there may be many. */
const FUNCTIONS = 20

/** The answer of `/api/status`: channels, queues, replicas, store, slots and token. */
export async function reportStatus(parts: {
  version: string
  startedAt: number
  service: ServiceClient
  store: StoreReader
  peers: () => Promise<Peers>
  health: Health | null
  configured: Pick<Config['service'], 'baseUrl' | 'consoleUrl' | 'sessionSlots' | 'tokenExpiresAt'>
  writes: Writes
  /** The configured tools. */
  tools: readonly { name: string }[]
}): Promise<StatusReport> {
  const { service, configured } = parts
  const counts = await parts.store.counts()
  const tools = new Set(parts.tools.map(({ name }) => name))
  const functions = await parts.store.functionsBeside([...tools], FUNCTIONS)
  const perHandler = Object.values(counts.deliveries)
  const peers = await parts.peers()
  const discovery = service.discovery()
  const { routes } = discovery
  const channel = (name: Channel): StatusReport['channels'][Channel] => {
    const { state, since, lastError, lastEventAt, lag, lastSeq } = channelOf(name, peers)
    return {
      state,
      since,
      last_error: lastError,
      last_event_at: lastEventAt,
      lag_seconds: lag?.seconds ?? null,
      last_seq: lastSeq,
    }
  }
  return {
    version: parts.version,
    started_at: parts.startedAt,
    leader: peers.leads,
    replicas: peers.replicas.map((replica) => ({
      id: replica.id,
      name: replica.name,
      version: replica.version,
      self: replica.self,
      leader: replica.leads,
      shards: replica.shards,
      epoch: replica.epoch,
      configuration: replica.configuration,
      seen_seconds_ago: replica.seenAgo / 1000,
      started_at: replica.startedAt,
    })),
    channels: {
      stream: channel('stream'),
      webhook: channel('webhook'),
      poll: channel('poll'),
    },
    routes: Object.entries(routes).map(([operation, route]) =>
      route.found
        ? { operation, method: route.method, path: route.path, how: route.how, reason: null }
        : {
            operation,
            method: null,
            path: null,
            how: 'missing' as const,
            reason: reasonOf(route, discovery),
          },
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
    throughput: minutesOf(peers),
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

/** While the service's document is not known, it may have the route. */
function reasonOf(route: NoRoute, { documented, fault }: Pick<Discovery, 'documented' | 'fault'>): string {
  if (documented) return route.reason
  const unread = `the service's document is not known (${fault}), and the sidecar tries again`
  return route.key === null ? unread : `${unread}; if the service has none, set service.routes.${route.key}`
}

export function disabled(since: number): ChannelStatus {
  return { state: 'disabled', since, lastError: null, lastEventAt: null, lastSeq: null }
}

/** Whether the last write to the store succeeded. */
export interface Writes {
  observer: Pick<Observer, 'commit' | 'storeRefused'>
  report(): StatusReport['store']
  /** Another process has the store, or its files are gone: no later write changes that. */
  lose(error: StoreError): void
  /** For `/readyz`: a store that refuses writes leaves us ready, a lost store does not. */
  check(): Readiness['checks'][number]
}

export function createWrites(clock: Pick<Clock, 'now'>): Writes {
  let lost: StoreError | null = null
  let last: StatusReport['store'] = { state: 'accepting', since: clock.now(), reason: null }
  return {
    observer: {
      commit() {
        if (lost === null && last.state !== 'accepting')
          last = { state: 'accepting', since: clock.now(), reason: null }
      },
      storeRefused(reason) {
        if (lost !== null) return
        const since = last.state === 'refusing' ? last.since : clock.now()
        last = { state: 'refusing', since, reason }
      },
    },
    report: () => last,
    lose(error) {
      lost = error
      last = { state: 'refusing', since: clock.now(), reason: refusalOf(error) }
    },
    check() {
      if (lost !== null) return { name: 'store', ok: false, detail: lost.message }
      const { reason } = last
      const detail = reason === null ? {} : { detail: `it refuses writes (${reason})` }
      return { name: 'store', ok: true, ...detail }
    },
  }
}

/** Facts and deliveries are counted for each minute, milliseconds. */
const MINUTE = 60_000

/** Facts and deliveries in each minute of the last hour. */
export interface Throughput {
  observer: Partial<Observer>
  report(): Minute[]
}

export function createThroughput(clock: Pick<Clock, 'now'>): Throughput {
  const minutes: Minute[] = []
  /** The current minute. Minutes in which nothing happened are filled in, so that a chart has the right time axis. */
  const current = (): Minute => {
    const at = Math.floor(clock.now() / MINUTE) * MINUTE
    const last = minutes.at(-1)
    // After the wall clock was set back, the last minute continues to count.
    if (last !== undefined && at <= last.at) return last
    const from = last === undefined ? at : Math.max(last.at + MINUTE, at - (MINUTES - 1) * MINUTE)
    let minute = emptyMinute(from)
    minutes.push(minute)
    for (let next = from + MINUTE; next <= at; next += MINUTE) minutes.push((minute = emptyMinute(next)))
    minutes.splice(0, minutes.length - MINUTES)
    return minute
  }
  return {
    observer: {
      fact: () => void current().facts++,
      callback({ outcome }) {
        if (outcome === 'delivered') current().delivered++
        else current().failed++
      },
      call: () => void current().calls++,
    },
    report() {
      current()
      return minutes.map((minute) => ({ ...minute }))
    },
  }
}
