import { crc32 } from 'node:zlib'
import type { TransientEvent } from './observer.ts'

/**
 * Three processes share one database: each owns a third of the sessions, by their shards, and one of them is the leader. Only
 * the owner of a session works on it. With SQLite, one process always owns everything.
 */
export interface Shards {
  /** Whether this process works on the session. null: on what belongs to the organization. */
  owns(sessionId: string | null): boolean
  /**
   * Whether this process is the leader, which holds the stream, the sweep, the subscription and housekeeping. Once
   * true, it stays true until `leave`.
   */
  readonly leads: boolean
  subscribe(subscriber: Partial<ShardTopics>): void
  /** Begins to take shards; returns when it has joined. */
  join(): Promise<void>
  /**
   * Called before a clean stop, after the leader's work has stopped. From then on the process takes no shards, and
   * its claims return nothing.
   */
  leave(): Promise<void>
  /** All processes, for people; empty with SQLite. */
  replicas(): Promise<ReplicaRecord[]>
  /** `report`: the text that each heartbeat of this process reports to the others (`ReplicaRecord.report`). */
  describe(report: () => string): void
  /** The state of the leader's stream, which the next heartbeat reports to the others. */
  report(state: StreamState): void
  /** As the last heartbeat of the leader reported it. */
  readonly streamConnected: boolean
  /** Called by the leader: passes a transient event of its stream on to the other processes. Some are lost. */
  shareTransient(event: TransientEvent): void
}

export interface StreamState {
  streamConnected: boolean
}

export interface ShardTopics {
  /** This process became the leader. */
  led(): void
  /** This process took shards, whose queues may have due work. */
  gained(shards: readonly number[]): void
  /**
   * Shards were handed over while no work on them was under way: whatever is cached about their sessions and calls
   * must be dropped.
   */
  lost(shards: readonly number[]): void
  /** Another process committed something that concerns this one; it announced the commit, or a poll found it. */
  woken(wake: Wake): void
  /**
   * A commit of this process seemed to fail because its answer was lost, but the server had stored it: nothing
   * reported its facts.
   */
  missed(): void
  /** The leader read a transient event from its stream. The frames before it are stored. */
  transientShared(event: TransientEvent): void
  /** The number of processes that take shards changed; they share the rate budget. One that was killed counts until it is fenced. */
  population(live: number): void
}

export const WAKE_TOPICS = ['lanes', 'hints', 'calls', 'facts', 'handlers', 'secrets', 'waits'] as const
export type WakeTopic = (typeof WAKE_TOPICS)[number]

export interface Wake {
  topics: ReadonlySet<WakeTopic>
  /** Announced changes, as far as they are known: a subject and its session. */
  hints: readonly { sessionId: string; subject: string }[]
}

export interface ReplicaRecord {
  id: string
  name: string
  version: string
  self: boolean
  leads: boolean
  /** The number of shards that it owns. */
  shards: number
  /** The highest epoch of its leases; null: it has none. */
  epoch: number | null
  /** Equal for equal configurations; null: an older version, which records none. */
  configuration: string | null
  /** What its last heartbeat reported about it; null: nothing yet, or an older version, which reports nothing. */
  report: string | null
  /** Milliseconds since its last heartbeat. */
  seenAgo: number
  /** By the wall clock of its machine. */
  startedAt: number
}

export const SHARDS = 64
/** Leases that are not renewed end after so long, milliseconds. */
export const LEASE = 15_000

/** The shard of a session's hints, lanes and calls. */
export function shardOf(sessionId: string): number {
  return crc32(sessionId) % SHARDS
}

/** The shards of a process that shares its store with no other. */
export function allShards(): Shards {
  const subscribers: Partial<ShardTopics>[] = []
  let streamConnected = false
  return {
    owns: () => true,
    leads: true,
    subscribe: (subscriber) => void subscribers.push(subscriber),
    async join() {
      const all = Array.from({ length: SHARDS }, (_, shard) => shard)
      for (const one of subscribers) {
        one.led?.()
        one.gained?.(all)
      }
    },
    leave: async () => undefined,
    replicas: async () => [],
    describe: () => undefined,
    report: (state) => void ({ streamConnected } = state),
    get streamConnected() {
      return streamConnected
    },
    shareTransient: () => undefined,
  }
}
