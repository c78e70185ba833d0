import { setTimeout as pause } from 'node:timers/promises'
import type { Fault } from '../../checker/history.ts'
import { gather } from '../oracle/evidence.ts'
import { counters, countsIn, gauges, type Counts } from '../oracle/metrics.ts'
import { restOf, returned, type Rest } from '../steady.ts'
import type { Replica } from './replica.ts'
import { holdingsIn, received, shared, type Report } from './shares.ts'
import type { ReplicaWorld } from './world.ts'

/** A busy shard that is not handed over in 3 s is kept for 30 s: so long it may take until each has its share, milliseconds. */
const SHARING = 45_000
/** Between two looks, milliseconds. */
const LOOK = 250

/** What had happened when the processes of the calm began. */
export interface Beginning {
  /** Steady milliseconds. */
  at: number
  counts: Counts
}

/** While no process lives. */
export async function beginning(world: ReplicaWorld): Promise<Beginning> {
  return { at: performance.now(), counts: countsIn(await world.pages()) }
}

/** Starts each process that does not live. */
export async function startAll(world: ReplicaWorld): Promise<void> {
  const started = world.replicas.filter(({ sidecar }) => !sidecar.alive)
  for (const { sidecar } of started) sidecar.start()
  for (const { number, sidecar } of started)
    if (!(await sidecar.ready()))
      world.violated('exit', `in the calm replica ${number} ended while it started`)
}

/** Waits until all that live agree with each other, the database and the application on who has what, and on what was done. */
export async function agree(world: ReplicaWorld, since: Beginning): Promise<Fault[]> {
  const limit = performance.now() + SHARING
  for (;;) {
    const faults = await look(world, since)
    if (faults.length === 0 || performance.now() > limit) return faults
    await pause(LOOK)
  }
}

async function look(world: ReplicaWorld, { at, counts }: Beginning): Promise<Fault[]> {
  const evidence = await gather(world)
  const reports = await Promise.all(
    world.living.map(async (replica) => ({ replica, report: await reportOf(replica) })),
  )
  const { app, tally } = world
  const metrics = reports.map(({ report }) => report.metrics).join('\n')
  const now = countsIn(evidence)
  const results = new Set(
    evidence.calls.flatMap(({ call_id, result_kind: kind }) => (kind === null ? [] : call_id)),
  )
  tally.add('counts compared', 1)
  return [
    ...shared(
      reports.map(({ report }) => report),
      await holdingsIn(world),
    ),
    ...gauges({ ...evidence, metrics }),
    ...counters(metrics, counts, now),
    ...reports.flatMap(({ replica, report }) => {
      const mine = ({ headers, at: when }: (typeof app.callbacks | typeof app.runs)[number]): boolean =>
        when >= at && world.replicaAt(headers.host) === replica
      const runs = app.runs
        .filter(mine)
        .map(({ name, call }) => ({ name, withdrawn: !results.has(call.call_id) }))
      return received(report, { callbacks: app.callbacks.filter(mine), runs })
    }),
  ]
}

async function reportOf({ number, sidecar }: Replica): Promise<Report> {
  const { text: metrics } = await sidecar.ask('GET', '/metrics')
  return { name: `replica ${number}`, life: sidecar.life, metrics }
}

/** I11: who has worked holds no more than those that have only begun. */
export async function relaxed(world: ReplicaWorld, worker: Replica): Promise<Fault[]> {
  world.balancer.cutAll()
  const idle = world.living.filter((replica) => replica !== worker)
  const rests = await Promise.all(idle.map(({ sidecar }) => restOf(sidecar)))
  const most: Record<string, number> = {}
  for (const [name, count] of rests.flatMap((rest) => Object.entries(rest)))
    most[name] = Math.max(most[name] ?? 0, count)
  return idle.length === 0 ? [] : await returnedOf(worker, most)
}

/** I11, of one of several. */
export async function returnedOf({ number, sidecar }: Replica, without: Rest): Promise<Fault[]> {
  const faults = await returned(sidecar, without)
  return faults.map(({ invariant, message }) => ({ invariant, message: `of replica ${number} ${message}` }))
}
