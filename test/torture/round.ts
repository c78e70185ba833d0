import { writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Fault } from './fault.ts'
import { judge } from './judge.ts'
import { live } from './lives.ts'
import type { Tally } from './tally.ts'
import { blow } from './weather.ts'
import { World, type WorldOptions } from './world.ts'

export interface RoundOptions extends WorldOptions {
  /** The storm ends after so many SIGKILLs, or at the latest after `ms` milliseconds. */
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
  /** Kept when something was wrong. */
  folder: string | null
}

/** Milliseconds between two acts of people who use the service. */
const LOAD = 250
/** How long calm may take until everything rests, milliseconds: a handler that was away is tried every 30 s. */
const CALM = 90_000

/** A storm, then calm, then the truth. */
export async function playRound(options: RoundOptions): Promise<Outcome> {
  const world = await World.open(options)
  let faults: Fault[]
  try {
    await storm(world, options)
    faults = await judge(world, CALM)
  } catch (error) {
    faults = [...world.violations, { invariant: 'round', message: String(error instanceof Error ? error.stack : error) }]
  }
  if (world.sidecar.alive) await lastStop(world, faults)
  const folder = faults.length === 0 ? null : world.folder
  if (folder !== null) await keep(world, faults)
  await world[Symbol.asyncDispose]()
  if (folder === null) await rm(world.folder, { recursive: true, force: true })
  return { seed: options.seed, faults, tally: world.tally, folder }
}

async function storm(world: World, { kills, ms, longest, early }: RoundOptions): Promise<void> {
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

/** Every round ends as a deployment does. */
async function lastStop(world: World, faults: Fault[]): Promise<void> {
  const life = await world.sidecar.stop()
  if (life?.code !== 0)
    faults.push({ invariant: 'exit', message: `at rest SIGTERM ended it with ${life?.code ?? 'nothing'}` })
}

/** For a person to look at, beside the database, the log and the configuration. */
async function keep({ folder, app, gateway, service }: World, faults: readonly Fault[]): Promise<void> {
  const write = (name: string, value: unknown): void =>
    writeFileSync(path.join(folder, name), JSON.stringify(value, null, 1))
  write('violations.json', faults)
  write('callbacks.json', app.callbacks)
  write('runs.json', app.runs)
  write('requests.json', gateway.passed)
  write('ledger.json', await service.ledger().catch(() => null))
}
