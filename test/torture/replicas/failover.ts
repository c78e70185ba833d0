import { setTimeout as pause } from 'node:timers/promises'
import type { Passed } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'
import type { Replica } from './replica.ts'
import { ReplicaWorld, type ReplicaOptions } from './world.ts'

type Way = 'kill' | 'stop'

/** How long one failover took, milliseconds. */
export interface Failover {
  way: Way
  /** Until the stream of another process was answered. */
  stream: number
  /** Until another process delivered a fact: of each session that the first one had. */
  sessions: readonly number[]
}

/** At most, milliseconds: a lease of 15 s, and a start of the stream; after a clean stop nothing has to end first. */
const LIMITS: Readonly<Record<Way, number>> = { kill: 20_000, stop: 3000 }
const SESSIONS = 12
/** Between two messages to a session, milliseconds: while it is measured, and before. */
const EACH = 300
const CALM = 1500
/** Neither what is measured nor what is waited for takes longer, milliseconds. */
const PATIENCE = 60_000
/** A session is had by who delivered its last fact, which is so old at the most, milliseconds. */
const RECENT = 5000

/** Ends the leader `times` times, in turn by SIGKILL and by SIGTERM, and measures until others have its work. */
export async function measureFailovers(
  options: ReplicaOptions,
  { times }: { times: number },
  done: (failover: Failover) => void,
): Promise<void> {
  // The service frees the slot of a stream as late as the real one does.
  await using world = await ReplicaWorld.open({ ...options, limits: { streamSlotMs: 4500 } })
  const sessions: string[] = []
  while (sessions.length < SESSIONS) sessions.push(await world.service.create({}))
  for (const { sidecar } of world.replicas) sidecar.start()
  for (let time = 0; time < times; time++) {
    for (const { sidecar, number } of world.replicas)
      if (!(await sidecar.ready()))
        throw new Error(`replica ${number} ended while it started: ${world.folder}`)
    const leader = await steady(world, sessions)
    done(await fail(world, leader, time % 2 === 0 ? 'kill' : 'stop'))
    leader.sidecar.start()
  }
}

/**
 * Waits until one process reads the stream and has some of the sessions. A process that joins gets idle shards first, so a
 * leader that has none gets some of new sessions.
 * @returns that one.
 */
async function steady(world: ReplicaWorld, sessions: string[]): Promise<Replica> {
  return await until(
    'leader that has sessions',
    async () => {
      await send(world, sessions)
      await pause(CALM)
      const [leader, another] = world.replicas.filter((replica) => streamsOf(world, replica).length > 0)
      if (another !== undefined || leader === undefined) return false
      if (sessionsOf(world, leader).length > 0) return leader
      sessions.shift()
      sessions.push(await world.service.create({}))
      return false
    },
    PATIENCE,
  ).catch((error: unknown) => {
    const seen = world.replicas.map((replica) => {
      const { life } = replica.sidecar
      const state = life.ready ? 'ready' : 'not ready'
      const [had, streams] = [sessionsOf(world, replica).length, streamsOf(world, replica).length]
      return `replica ${replica.number}, life ${life.number}, ${state}: ${had} sessions, ${streams} streams`
    })
    throw new Error(`${seen.join('; ')}; see ${world.folder}`, { cause: error })
  })
}

async function fail(world: ReplicaWorld, victim: Replica, way: Way): Promise<Failover> {
  const had = sessionsOf(world, victim)
  const at = performance.now()
  const ended = way === 'kill' ? victim.sidecar.kill() : victim.sidecar.stop()
  const others = world.replicas.filter((replica) => replica !== victim)
  const taken = new Map<string, number>()
  const stream = (): number | undefined =>
    others
      .flatMap((replica) => streamsOf(world, replica))
      .map(({ answeredAt }) => answeredAt ?? 0)
      .find((answeredAt) => answeredAt > at)
  await until(
    `failover after a ${way}`,
    async () => {
      await send(
        world,
        had.filter((session) => !taken.has(session)),
      )
      await pause(EACH)
      for (const callback of world.app.callbacks) {
        const session = String(callback.events[0]?.session_id)
        if (callback.at < at || taken.has(session) || !had.includes(session)) continue
        if (others.some((replica) => isFrom(replica, callback.headers.host)))
          taken.set(session, callback.at - at)
      }
      return stream() !== undefined && taken.size === had.length
    },
    PATIENCE,
  )
  await ended
  return { way, stream: (stream() ?? Infinity) - at, sessions: [...taken.values()] }
}

async function send({ service }: ReplicaWorld, sessions: readonly string[]): Promise<void> {
  // A session that has too many messages refuses the next one.
  for (const session of sessions) await service.send(session, 'say Hello').catch(() => undefined)
}

/** The sessions whose last fact this process delivered. */
function sessionsOf({ app }: ReplicaWorld, replica: Replica): string[] {
  const owners = new Map<string, string | undefined>()
  for (const { at, events, headers } of app.callbacks) {
    const session = events[0]?.session_id
    if (at > performance.now() - RECENT && typeof session === 'string') owners.set(session, headers.host)
  }
  return [...owners].filter(([, host]) => isFrom(replica, host)).map(([session]) => session)
}

/** Streams that this process has open. */
function streamsOf({ gateway }: ReplicaWorld, replica: Replica): Passed[] {
  return gateway.passed.filter(
    ({ headers, status, endedAt }) =>
      status === 200 &&
      endedAt === null &&
      headers.accept?.includes('text/event-stream') === true &&
      isFrom(replica, headers.host),
  )
}

function isFrom({ links }: Replica, host: string | undefined): boolean {
  return Object.values(links).some(({ port }) => host === `127.0.0.1:${port}`)
}

/** Those that took too long. */
export function tooSlow(failovers: readonly Failover[]): Failover[] {
  return failovers.filter(({ way, stream, sessions }) => Math.max(stream, ...sessions) > LIMITS[way])
}

/** The distribution, in seconds. */
export function describeFailovers(failovers: readonly Failover[]): string {
  const lines = (['kill', 'stop'] as const).flatMap((way) => {
    const mine = failovers.filter((failover) => failover.way === way)
    if (mine.length === 0) return []
    return [
      `${way}: ${mine.length} times, limit ${LIMITS[way] / 1000} s`,
      `  stream of another process     ${distribution(mine.map(({ stream }) => stream))}`,
      `  fact of a session (${mine.flatMap(({ sessions }) => sessions).length})`.padEnd(32) +
        distribution(mine.flatMap(({ sessions }) => sessions)),
      `  slowest session of each time  ${distribution(mine.map(({ sessions }) => Math.max(...sessions)))}`,
    ]
  })
  return [...lines, `too slow: ${tooSlow(failovers).length} of ${failovers.length}`].join('\n')
}

function distribution(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (part: number): string =>
    ((sorted[Math.ceil(part * (sorted.length - 1))] ?? Number.NaN) / 1000).toFixed(2)
  return `least ${at(0)}, median ${at(0.5)}, p90 ${at(0.9)}, most ${at(1)} s`
}
