import { rm } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { Fault } from '../../checker/history.ts'
import { judge } from '../judge.ts'
import { heeded } from '../oracle/requests.ts'
import { kept } from '../oracle/secrets.ts'
import { keep, type Outcome } from '../round.ts'
import { fencingsOf, hasty, unexcused } from './exits.ts'
import { judgeStop, live, type Pace } from './lives.ts'
import { owned } from './owners.ts'
import { admitted, watchWrites } from './writes.ts'
import { blow } from './weather.ts'
import { ReplicaWorld, type ReplicaOptions } from './world.ts'

export interface ReplicaStorm extends Pace {
  /** It ends after so many SIGKILLs, or at the latest after `ms` milliseconds. */
  kills: number | null
  ms: number
}

/** Milliseconds between two acts of people who use the service. */
const LOAD = 500
/** Time limit until everything is idle, milliseconds: a lease of a killed process, and an unreachable handler's 30 s. */
const CALM = 90_000
/** Between two looks, milliseconds. */
const LOOK = 100

/** A storm over several processes, then all are stopped, and a fresh one does what is left; then the truth. */
export async function playReplicas(options: ReplicaOptions, storm: ReplicaStorm): Promise<Outcome> {
  const world = await ReplicaWorld.open(options)
  let faults: Fault[]
  try {
    await rage(world, storm)
    await startAfresh(world)
    const verdict = await judge(world, CALM)
    // The program must still answer.
    const hidden = await kept(world, verdict.evidence)
    const { sidecar } = world
    const life = await sidecar.stop()
    const fencings = await fencingsOf(world)
    faults = [
      ...verdict.faults,
      ...owned(world),
      ...heeded(world),
      ...hidden,
      ...(await admitted(world)),
      ...unexcused(world.replicas, fencings),
      ...hasty(world.replicas, fencings),
      ...deadlocks(world),
    ]
    if (life?.code !== 0)
      faults.push({
        invariant: 'exit',
        message: `when idle SIGTERM ended it with ${life?.code ?? 'nothing'}`,
      })
  } catch (error) {
    const message = String(error instanceof Error ? error.stack : error)
    faults = [...world.violations, { invariant: 'round', message }]
  }
  const folder = faults.length === 0 ? null : world.folder
  if (folder !== null) await keep(world, faults, await recordsOf(world))
  await world[Symbol.asyncDispose]()
  if (folder === null) await rm(world.folder, { recursive: true, force: true })
  return { seed: options.seed, faults, tally: world.tally, slopes: [], folder }
}

async function rage(world: ReplicaWorld, { kills, ms, ...pace }: ReplicaStorm): Promise<void> {
  await beginWatch(world)
  const over = new AbortController()
  const { signal } = over
  const limit = performance.now() + ms
  world.load.start(LOAD)
  const weather = blow(world, signal)
  const lives = world.replicas.map((replica) => live(world, replica, signal, pace))
  try {
    while (performance.now() < limit && killsIn(world) < (kills ?? Infinity)) await pause(LOOK)
  } finally {
    over.abort()
    await Promise.all(lives)
    await world.load.stop()
    await weather
  }
}

/** The first process makes the tables. The others start later: a trigger that is added locks each table. */
async function beginWatch(world: ReplicaWorld): Promise<void> {
  const { sidecar } = world
  sidecar.start()
  if (!(await sidecar.ready())) world.violated('exit', 'the first process ended while it started')
  await watchWrites(world)
}

function killsIn({ tally }: ReplicaWorld): number {
  return tally.sum('killed by SIGKILL')
}

/** Replicas that wait for each other in the database hold all their writes for a second (`deadlock_timeout`). */
function deadlocks({ postgres: { deadlocks: count } }: ReplicaWorld): Fault[] {
  return count === 0
    ? []
    : [{ invariant: 'deadlock', message: `deadlocks between replicas that PostgreSQL ended: ${count}` }]
}

/** What the others left is done by a process that never saw it. */
async function startAfresh(world: ReplicaWorld): Promise<void> {
  const { replicas, tally } = world
  await Promise.all(
    replicas.map(async (replica) => {
      if (replica.sidecar.alive) judgeStop(world, replica, await replica.sidecar.stop())
    }),
  )
  const { sidecar } = world
  sidecar.start()
  if (!(await sidecar.ready())) world.violated('exit', 'a fresh process ended while it started')
  for (const replica of replicas) tally.add('lives', replica.sidecar.lives.length)
}

/** What is kept beside the files of one process. */
async function recordsOf(world: ReplicaWorld): Promise<Record<string, unknown>> {
  return {
    'replicas.json': world.replicas.map(({ number, sidecar, frozen, cutOff, links }) => ({
      number,
      ports: Object.fromEntries(Object.entries(links).map(([name, { port }]) => [name, port])),
      lives: sidecar.lives,
      frozen,
      cutOff,
    })),
    'database.json': await world.pages().catch(() => null),
  }
}
