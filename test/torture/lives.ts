import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from '../simulation/chance.ts'
import { examine } from './autopsy.ts'
import { meddle } from './operator.ts'
import type { Life } from './sidecar.ts'
import type { World } from './world.ts'

export interface LivesOptions {
  /** SIGKILLs, then it is over; null: until the signal. */
  kills: number | null
  signal: AbortSignal
  /** Longest life after the start, milliseconds. */
  longest: number
  /** Share of the lives that end while they begin. */
  early: number
}

/** What a start takes until one was measured, milliseconds. */
const STARTING = 1000
/** Before this part of a start nothing but code was loaded. */
const LOADED = 0.4
/** The supervisor waits so long before it starts what ended by itself, milliseconds. */
const RESTART = 200
/** So long after a fault its consequence may come, milliseconds. */
const AFTERMATH = 15_000

/** Lets the program live and die again and again. It lives when this returns. */
export async function live(world: World, options: LivesOptions): Promise<void> {
  const { sidecar, tally } = world
  const chance = world.draw('lives')
  const operator = world.draw('operator')
  const { signal } = options
  let kills = 0
  let starting = STARTING
  while (!signal.aborted && kills < (options.kills ?? Infinity)) {
    if (!sidecar.alive) sidecar.start()
    if (chance.is(options.early)) await rest(starting * (LOADED + (1 - LOADED) * chance.next()), signal)
    else if (await sidecar.ready()) {
      starting = Math.max(STARTING, Date.now() - sidecar.life.from)
      await rest(lifetime(chance, options.longest), signal)
    }
    if (!sidecar.alive) {
      diedAlone(world, sidecar.life)
      await pause(RESTART)
      continue
    }
    if (signal.aborted) break
    if (await meddle(world, operator)) {
      // Without its store no start would succeed, and the round would never end.
      if (world.violations.length > 0) throw new Error('a violation ended the round early')
      continue
    }
    if (await end(world, chance)) kills++
  }
  if (!sidecar.alive) sidecar.start()
  while (!(await sidecar.ready())) {
    diedAlone(world, sidecar.life)
    await pause(RESTART)
    sidecar.start()
  }
  tally.add('lives', sidecar.lives.length)
}

/** Most lives are short, some long. */
function lifetime(chance: Chance, longest: number): number {
  return Math.round(longest * chance.next() ** 3) + 20
}

/** @returns whether it was a SIGKILL. */
async function end(world: World, chance: Chance): Promise<boolean> {
  const { sidecar, tally } = world
  const kind = chance.next()
  if (kind < 0.1) {
    await freeze(world, chance)
    return false
  }
  if (kind < 0.2) {
    const again = kind < 0.13 ? chance.int(0, 500) : null
    tally.add(again === null ? 'killed by SIGTERM' : 'killed by SIGTERM twice')
    judgeStop(world, await sidecar.stop(again), again !== null)
    return false
  }
  const life = await sidecar.kill()
  if (life.signal !== 'SIGKILL') {
    diedAlone(world, life)
    return false
  }
  tally.add(life.ready ? 'killed by SIGKILL' : 'killed by SIGKILL while starting')
  await examine(world)
  return true
}

async function freeze({ sidecar, tally, pauses }: World, chance: Chance): Promise<void> {
  const from = Date.now()
  sidecar.signal('SIGSTOP')
  await pause(chance.is(0.8) ? chance.int(20, 800) : chance.int(800, 4000))
  sidecar.signal('SIGCONT')
  pauses.push({ from, until: Date.now() })
  tally.add('stopped by SIGSTOP')
}

/** SIGTERM: 0 once it runs; before that the system's own end. A second one ends it at once, with 1. */
function judgeStop(world: World, life: Life | null, twice: boolean): void {
  if (life === null) return world.violated('exit', 'SIGTERM did not end the program within its grace')
  if (life.code === 0) return
  if (twice && life.code === 1) return
  if (!life.ready && life.signal === 'SIGTERM') return
  if (!excused(world, life))
    world.violated('exit', `life ${life.number} ended with ${life.code ?? life.signal} on SIGTERM`)
}

function diedAlone(world: World, life: Life): void {
  if (excused(world, life)) return world.tally.add(`ended by itself with ${life.code ?? life.signal}`)
  world.violated('exit', `life ${life.number} ended by itself with ${life.code ?? life.signal}`)
}

/** A start may fail: the token is rejected (3), or the disk is full (1). Who runs goes on. */
function excused({ full, rejectedUntil }: World, { code, from, until, ready }: Life): boolean {
  if (ready) return false
  const rejected = rejectedUntil > 0 && rejectedUntil > from - AFTERMATH
  const wasFull = full !== null && (full.until ?? Infinity) > from && full.from < (until ?? Infinity)
  return (code === 3 && rejected) || (code === 1 && wasFull)
}

async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => undefined)
}
