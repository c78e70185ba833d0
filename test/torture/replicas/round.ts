import { rm } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { Fault } from '../../checker/history.ts'
import { judge } from '../judge.ts'
import { heeded } from '../oracle/requests.ts'
import { kept } from '../oracle/secrets.ts'
import { keep, type Outcome } from '../round.ts'
import { grows, restOf, watch, type Slope } from '../steady.ts'
import { agree, beginning, relaxed, returnedOf, startAll, type Beginning } from './calm.ts'
import { fencingsOf, hasty, unexcused } from './exits.ts'
import { judgeStop, live, type Pace } from './lives.ts'
import { owned } from './owners.ts'
import { holdingsIn, left } from './shares.ts'
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
/** A life of so many milliseconds has warmed up: in its second half, no process grew by more than 3 MiB. */
const WARM = 240_000
/** One process of three grew from 95 to 118 MiB in its second 50 s. */
const COLD_MARGIN = 40
/** What must not grow in a steady life of `ms` milliseconds. The heap and the connections come and go with the load. */
const marginsIn = (ms: number): ReadonlyMap<string, number | null> =>
  new Map([
    ['resident memory', ms < WARM ? COLD_MARGIN : null],
    ['timers', 8],
  ])
/** Between two looks, milliseconds. */
const LOOK = 100

/** A storm over several processes, then all are stopped, and a fresh one does what is left; then the truth, with all again. */
export function playReplicas(options: ReplicaOptions, storm: ReplicaStorm): Promise<Outcome> {
  return play(options, async (world) => {
    await rage(world, storm)
    const since = await startAfresh(world)
    const faults = await judgeAll(world)
    const worker = world.living[0]
    await startAll(world)
    faults.push(...(await agree(world, since)))
    if (worker !== undefined) faults.push(...(await relaxed(world, worker)))
    return { faults, slopes: [] }
  })
}

/** All processes under load, left alone for `ms` milliseconds, then calm, then the truth. */
export function playSteadyReplicas(options: ReplicaOptions, ms: number): Promise<Outcome> {
  return play(options, async (world) => {
    await beginWatch(world)
    const since = { at: 0, counts: { facts: 0, delivered: 0, dead: 0, endedCalls: 0 } }
    await startAll(world)
    const unshared = await agree(world, since)
    const before = await Promise.all(world.replicas.map(({ sidecar }) => restOf(sidecar)))
    world.load.start(LOAD)
    const watched = await Promise.all(
      world.replicas.map(async ({ number, sidecar }) =>
        judged(await watch(sidecar, ms), marginsIn(ms), `of replica ${number}`),
      ),
    )
    await world.load.stop()
    const slopes = watched.flat()
    const faults = [...unshared, ...(await judgeAll(world)), ...(await agree(world, since)), ...grows(slopes)]
    world.balancer.cutAll()
    for (const [index, replica] of world.replicas.entries())
      faults.push(...(await returnedOf(replica, before[index] ?? {})))
    return { faults, slopes }
  })
}

/** `margins`: of what is judged; null: the margin of a process that is alone. */
function judged(slopes: readonly Slope[], margins: ReturnType<typeof marginsIn>, of: string): Slope[] {
  return slopes.flatMap((slope) => {
    const margin = margins.get(slope.name)
    return margin === undefined
      ? []
      : { ...slope, name: `${slope.name} ${of}`, margin: margin ?? slope.margin }
  })
}

async function play(
  options: ReplicaOptions,
  act: (world: ReplicaWorld) => Promise<{ faults: Fault[]; slopes: Slope[] }>,
): Promise<Outcome> {
  const world = await ReplicaWorld.open(options)
  const faults: Fault[] = []
  let slopes: Slope[] = []
  try {
    const acted = await act(world)
    slopes = acted.slopes
    faults.push(...acted.faults)
    faults.push(...(await lastStop(world)))
    faults.push(...(await judgeHistory(world)))
  } catch (error) {
    const message = String(error instanceof Error ? error.stack : error)
    faults.push({ invariant: 'round', message })
  }
  // Those that the verdict does not have.
  faults.unshift(...world.violations.filter((one) => !faults.includes(one)))
  const folder = faults.length === 0 ? null : world.folder
  if (folder !== null) await keep(world, faults, await recordsOf(world))
  await world[Symbol.asyncDispose]()
  if (folder === null) await rm(world.folder, { recursive: true, force: true })
  return { seed: options.seed, faults, tally: world.tally, slopes, folder }
}

async function judgeAll(world: ReplicaWorld): Promise<Fault[]> {
  const { evidence, faults } = await judge(world, CALM)
  // The program must still answer.
  return [...faults, ...(await kept(world, evidence))]
}

/** What was seen of the processes, whatever they are doing now. */
async function judgeHistory(world: ReplicaWorld): Promise<Fault[]> {
  const fencings = await fencingsOf(world)
  return [
    ...owned(world),
    ...heeded(world),
    ...(await admitted(world)),
    ...unexcused(world, fencings),
    ...hasty(world.replicas, fencings),
    ...deadlocks(world),
  ]
}

/** Every round ends as a deployment does. */
async function lastStop(world: ReplicaWorld): Promise<Fault[]> {
  const ended = await Promise.all(
    world.replicas.map(async ({ number, sidecar }) => {
      if (!sidecar.alive) return `in the calm replica ${number} ended by itself`
      const life = await sidecar.stop()
      return life?.code === 0
        ? null
        : `when idle SIGTERM ended replica ${number} with ${life?.code ?? 'nothing'}`
    }),
  )
  return [
    ...ended.flatMap((message) => (message === null ? [] : { invariant: 'exit', message })),
    ...left(await holdingsIn(world)),
  ]
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
async function startAfresh(world: ReplicaWorld): Promise<Beginning> {
  const { replicas, tally } = world
  await Promise.all(
    replicas.map(async (replica) => {
      if (replica.sidecar.alive) judgeStop(world, replica, await replica.sidecar.stop())
    }),
  )
  const since = await beginning(world)
  const { sidecar } = world
  sidecar.start()
  if (!(await sidecar.ready())) world.violated('exit', 'a fresh process ended while it started')
  for (const replica of replicas) tally.add('lives', replica.sidecar.lives.length)
  return since
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
    'fencings.json': await fencingsOf(world).catch(() => null),
  }
}
