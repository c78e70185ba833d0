import { writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Fault } from '../checker/history.ts'
import { judge } from './judge.ts'
import { live } from './lives.ts'
import { counters, countsIn, type Counts } from './oracle/metrics.ts'
import { heeded } from './oracle/requests.ts'
import { kept } from './oracle/secrets.ts'
import { grows, restOf, returned, watch, type Slope } from './steady.ts'
import type { Tally } from './tally.ts'
import { blow } from './weather.ts'
import { World, type WorldOptions } from './world.ts'

export interface Storm {
  /** It ends after so many SIGKILLs, or at the latest after `ms` milliseconds. */
  kills: number | null
  ms: number
  /** Longest life after a start, milliseconds. */
  longest: number
  /** Share of the lives that end while they begin. */
  early: number
}

export interface Outcome {
  seed: number
  faults: Fault[]
  tally: Tally
  slopes: Slope[]
  /** Kept when something was wrong. */
  folder: string | null
}

/** Milliseconds between two acts of people who use the service. */
const LOAD = 250
/**
 * Time limit until everything is idle, milliseconds: an unreachable handler is tried every 30 s.
 */
const CALM = 90_000
const NOTHING: Counts = { facts: 0, delivered: 0, dead: 0, endedCalls: 0 }

/** A storm, then calm, then the truth. */
export function playStorm(options: WorldOptions, storm: Storm): Promise<Outcome> {
  return play(options, async (world) => {
    await rage(world, storm)
    if (!world.polls) await restart(world)
    return []
  })
}

/** One life under load that is left alone for `ms` milliseconds, then calm, then the truth. */
export function playSteady(options: WorldOptions, ms: number): Promise<Outcome> {
  return play(options, async (world) => {
    world.sidecar.start()
    await world.sidecar.ready()
    const before = await restOf(world.sidecar)
    world.load.start(LOAD)
    const slopes = await watch(world.sidecar, ms)
    await world.load.stop()
    // Those of others do not close by themselves.
    world.links.webhooks.cutAll()
    world.violations.push(...(await returned(world.sidecar, before)))
    return slopes
  })
}

async function play(options: WorldOptions, act: (world: World) => Promise<Slope[]>): Promise<Outcome> {
  const world = await World.open(options)
  let slopes: Slope[] = []
  let faults: Fault[]
  try {
    slopes = await act(world)
    faults = [...(await judgeAll(world)), ...grows(slopes)]
  } catch (error) {
    const message = String(error instanceof Error ? error.stack : error)
    faults = [...world.violations, { invariant: 'round', message }]
  }
  if (world.sidecar.alive) await lastStop(world, faults)
  const folder = faults.length === 0 ? null : world.folder
  if (folder !== null) await keep(world, faults)
  await world[Symbol.asyncDispose]()
  if (folder === null) await rm(world.folder, { recursive: true, force: true })
  return { seed: options.seed, faults, tally: world.tally, slopes, folder }
}

async function judgeAll(world: World): Promise<Fault[]> {
  const { evidence, faults } = await judge(world, CALM)
  // A killed program loses counts that it had not reported.
  const exact =
    world.sidecar.lives.length === 1 ? counters(evidence.metrics, NOTHING, countsIn(evidence)) : []
  return [...faults, ...heeded(world), ...(await kept(world, evidence)), ...exact]
}

async function rage(world: World, { kills, ms, longest, early }: Storm): Promise<void> {
  const over = new AbortController()
  world.load.start(LOAD)
  const weather = blow(world, over.signal)
  const time = pause(ms, undefined, { signal: over.signal }).catch(() => undefined)
  const stormy = new AbortController()
  void time.then(() => stormy.abort())
  try {
    await live(world, { kills, signal: stormy.signal, longest, early })
  } finally {
    over.abort()
    await world.load.stop()
    await weather
  }
}

/** Without polling, webhooks that never came and sessions that were deleted are found by the look at the next start. */
async function restart({ sidecar }: World): Promise<void> {
  await sidecar.stop()
  sidecar.start()
  await sidecar.ready()
}

/** Every round ends as a deployment does. */
async function lastStop(world: World, faults: Fault[]): Promise<void> {
  const life = await world.sidecar.stop()
  if (life?.code !== 0)
    faults.push({ invariant: 'exit', message: `when idle SIGTERM ended it with ${life?.code ?? 'nothing'}` })
}

/** For a person to look at, beside the database, the log and the configuration. `more`: further files. */
export async function keep(
  { folder, app, gateway, service }: Pick<World, 'folder' | 'app' | 'gateway' | 'service'>,
  faults: readonly Fault[],
  more: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const files = {
    'violations.json': faults,
    'callbacks.json': app.callbacks,
    'runs.json': app.runs,
    'requests.json': gateway.passed,
    'ledger.json': await service.ledger().catch(() => null),
    ...more,
  }
  for (const [name, value] of Object.entries(files))
    writeFileSync(path.join(folder, name), JSON.stringify(value, null, 1))
}
