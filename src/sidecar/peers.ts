import type { StatusReport } from './admin/routes/status.ts'
import type { Channel } from '../core/fact.ts'
import type { HandlerStatus } from '../core/handler.ts'
import type { ChannelStatus } from '../core/observer.ts'
import { LEASE, type ReplicaRecord, type Shards } from '../core/shards.ts'
import { isObject, numberOf, parseJson, stringOf } from '../std/json.ts'

export type Minute = StatusReport['throughput'][number]

/** `lag`: of the last fact that the channel reported, in seconds, and when it was stored. null: none yet. */
export interface ChannelReport extends ChannelStatus {
  lag: { seconds: number; at: number } | null
}

/** What a replica knows and the store does not. */
export interface ReplicaReport {
  /** null: another version reported something else. */
  channels: Record<Channel, ChannelReport | null>
  handlers: readonly HandlerStatus[]
  minutes: readonly Minute[]
}

/** All replicas, as one of them knows them. */
export interface Peers {
  /** Whether this one is the leader. */
  leads: boolean
  replicas: readonly ReplicaRecord[]
  own: ReplicaReport
  /** Of the other live replicas, at most as old as a heartbeat. */
  others: readonly ReplicaReport[]
  /** The leader; `report` null: it is an older version, or has just begun. null: no replica leads. */
  leader: { report: ReplicaReport | null; streamConnected: boolean } | null
}

/**
 * A load balancer sends an operator's requests to any of three replicas, and a handler may be unreachable from only one of them.
 * So each replica reports what it knows with its heartbeat, and each answers for all.
 */
export function joinReports(shards: Shards, own: () => ReplicaReport): () => Promise<Peers> {
  shards.describe(() => JSON.stringify(own()))
  return async () => {
    const replicas = await shards.replicas()
    const others: ReplicaReport[] = []
    const { leads: isLeader } = shards
    const mine = own()
    const { streamConnected } = shards
    let leader: Peers['leader'] = isLeader ? { report: mine, streamConnected } : null
    for (const { self, seenAgo, leads, report } of replicas) {
      if (self || seenAgo > LEASE) continue
      const other = readReport(report)
      if (other !== null) others.push(other)
      if (leads && !isLeader) leader = { report: other, streamConnected }
    }
    return { leads: isLeader, replicas, own: mine, others, leader }
  }
}

/** From the best to the worst. */
const HANDLER_STATES: readonly HandlerStatus['state'][] = ['up', 'down', 'paused']
const CHANNEL_STATES: readonly ChannelStatus['state'][] = [
  'disabled',
  'connecting',
  'live',
  'waiting',
  'stopped',
]
const MINUTE = ['at', 'facts', 'delivered', 'failed', 'calls'] as const
/** The most minutes that are kept and shown. */
export const MINUTES = 60

/**
 * The state of each handler for all replicas: down if one of them cannot reach it. A pause reaches every replica through the store,
 * so the pauses in the reports of others add nothing.
 */
export function handlersOf({ own, others }: Pick<Peers, 'own' | 'others'>): HandlerStatus[] {
  return own.handlers.map((status) => {
    const reported = others.flatMap(({ handlers }) =>
      handlers.filter(({ name, state }) => name === status.name && state !== 'paused'),
    )
    return reported.reduce((worst, other) => (isWorse(other, worst) ? other : worst), status)
  })
}

/** It has been down since the first replica could not reach it, and up since the last one could. */
function isWorse(one: HandlerStatus, other: HandlerStatus): boolean {
  if (one.state !== other.state)
    return HANDLER_STATES.indexOf(one.state) > HANDLER_STATES.indexOf(other.state)
  return one.state === 'up' ? one.since > other.since : one.since < other.since
}

/** The state of a channel is the leader's. Webhooks arrive at every replica, and each reports facts of its own sessions. */
export function channelOf(name: Channel, peers: Peers): ChannelReport {
  const all = [peers.own, ...peers.others].flatMap(({ channels }) => channels[name] ?? [])
  const lags = all.flatMap(({ lag }) => (lag === null ? [] : [lag])).toSorted((a, b) => b.at - a.at)
  const arrivals = all.flatMap(({ lastEventAt }) => (lastEventAt === null ? [] : [lastEventAt]))
  return {
    ...ledChannel(name, peers),
    lastEventAt: arrivals.length === 0 ? null : Math.max(...arrivals),
    lag: lags[0] ?? null,
  }
}

function ledChannel(name: Channel, { own, leader }: Peers): ChannelReport {
  const reported = leader?.report?.channels[name]
  if (reported != null) return reported
  const { [name]: mine } = own.channels
  if (mine === null) throw new Error(`this process does not report its channel ${name}`)
  // Webhooks need no leader, and a channel that is turned off is off at all replicas.
  if (name === 'webhook' || mine.state === 'disabled') return mine
  if (leader === null) return { ...mine, state: 'waiting', lastError: 'no replica leads' }
  const isLive = name === 'poll' || leader.streamConnected
  return {
    ...mine,
    state: isLive ? 'live' : 'waiting',
    lastError: isLive ? null : 'the leader is not connected',
  }
}

/** The sums of all replicas, the oldest minute first. */
export function minutesOf({ own, others }: Pick<Peers, 'own' | 'others'>): Minute[] {
  const sums = new Map<number, Minute>()
  for (const { minutes } of [own, ...others]) {
    for (const { at, facts, delivered, failed, calls } of minutes) {
      const sum = sums.get(at) ?? emptyMinute(at)
      sum.facts += facts
      sum.delivered += delivered
      sum.failed += failed
      sum.calls += calls
      sums.set(at, sum)
    }
  }
  return [...sums.values()].toSorted((a, b) => a.at - b.at).slice(-MINUTES)
}

export function emptyMinute(at: number): Minute {
  return { at, facts: 0, delivered: 0, failed: 0, calls: 0 }
}

/** null: there is none, or another version wrote something else. */
function readReport(text: string | null): ReplicaReport | null {
  const value = text === null ? null : parseJson(text)
  if (!isObject(value) || !isObject(value['channels'])) return null
  const { channels, handlers, minutes } = value
  return {
    channels: {
      stream: readChannel(channels['stream']),
      webhook: readChannel(channels['webhook']),
      poll: readChannel(channels['poll']),
    },
    handlers: readAll(handlers, readHandler),
    minutes: readAll(minutes, readMinute),
  }
}

function readAll<Entry>(value: unknown, read: (entry: unknown) => Entry | null): Entry[] {
  return (Array.isArray(value) ? value : []).flatMap((entry) => read(entry) ?? [])
}

function readChannel(value: unknown): ChannelReport | null {
  if (!isObject(value)) return null
  const state = CHANNEL_STATES.find((known) => known === value['state'])
  const since = numberOf(value['since'])
  if (state === undefined || since === null) return null
  return {
    state,
    since,
    lastError: stringOf(value['lastError']),
    lastEventAt: numberOf(value['lastEventAt']),
    lastSeq: stringOf(value['lastSeq']),
    lag: readLag(value['lag']),
  }
}

function readLag(value: unknown): ChannelReport['lag'] {
  if (!isObject(value)) return null
  const seconds = numberOf(value['seconds'])
  const at = numberOf(value['at'])
  return seconds === null || at === null ? null : { seconds, at }
}

function readHandler(value: unknown): HandlerStatus | null {
  if (!isObject(value)) return null
  const name = stringOf(value['name'])
  const state = HANDLER_STATES.find((known) => known === value['state'])
  const since = numberOf(value['since'])
  if (name === null || state === undefined || since === null) return null
  return { name, state, since, lastError: stringOf(value['lastError']) }
}

function readMinute(value: unknown): Minute | null {
  if (!isObject(value)) return null
  const [at, facts, delivered, failed, calls] = MINUTE.map((field) => numberOf(value[field]))
  if (at == null || facts == null || delivered == null || failed == null || calls == null) return null
  return { at, facts, delivered, failed, calls }
}
