import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from '../../simulation/chance.ts'
import type { Life } from '../sidecar.ts'
import type { Replica, Span } from './replica.ts'
import type { ReplicaWorld } from './world.ts'

export interface Pace {
  /** Between two faults of one replica, milliseconds at the most. */
  between: number
  /** The longest that a process is frozen, cut off or dead, milliseconds. */
  longest: number
}

/** A supervisor waits so long before it starts what ended by itself, milliseconds. */
const RESTART = 200

type Fault = (world: ReplicaWorld, replica: Replica, time: Time) => Promise<void>

interface Time {
  chance: Chance
  signal: AbortSignal
  longest: number
}

const FAULTS: readonly (readonly [weight: number, fault: Fault])[] = [
  [45, kill],
  [12, stopCleanly],
  [15, freeze],
  [14, (world, replica, time) => partition(world, replica, { ...time, lines: ['database'] })],
  [7, (world, replica, time) => partition(world, replica, { ...time, lines: ['service'] })],
  [7, (world, replica, time) => partition(world, replica, { ...time, lines: ['database', 'service'] })],
]

/** Lets one replica live, and fail again and again, until the signal. It may be dead when this returns. */
export async function live(
  world: ReplicaWorld,
  replica: Replica,
  signal: AbortSignal,
  { between, longest }: Pace,
): Promise<void> {
  const chance = world.draw(`lives of ${replica.number}`)
  const { sidecar } = replica
  while (!signal.aborted) {
    if (!sidecar.alive) sidecar.start()
    const over = await Promise.race([
      sidecar.ended().then(() => true),
      rest(chance.int(200, between), signal).then(() => false),
    ])
    if (over) {
      diedAlone(world, replica, sidecar.life)
      await rest(RESTART, signal)
    } else if (!signal.aborted) {
      await drawFault(chance)(world, replica, { chance, signal, longest })
    }
  }
}

function drawFault(chance: Chance): Fault {
  let left = chance.next() * FAULTS.reduce((sum, [weight]) => sum + weight, 0)
  return FAULTS.find(([weight]) => (left -= weight) < 0)?.[1] ?? kill
}

async function kill(world: ReplicaWorld, replica: Replica, { chance, signal, longest }: Time): Promise<void> {
  const life = await replica.sidecar.kill()
  if (life.signal !== 'SIGKILL') return diedAlone(world, replica, life)
  world.tally.add(life.ready ? 'killed by SIGKILL' : 'killed by SIGKILL while starting')
  await world.examine()
  await rest(chance.is(0.6) ? chance.int(0, 500) : chance.int(500, longest), signal)
}

async function stopCleanly(
  world: ReplicaWorld,
  replica: Replica,
  { chance, signal, longest }: Time,
): Promise<void> {
  world.tally.add('killed by SIGTERM')
  judgeStop(world, replica, await replica.sidecar.stop())
  await rest(chance.is(0.7) ? chance.int(0, 500) : chance.int(500, longest), signal)
}

async function freeze(
  { tally }: ReplicaWorld,
  { sidecar, frozen }: Replica,
  { chance, signal, longest }: Time,
): Promise<void> {
  const span: Span = { from: Date.now(), until: null }
  frozen.push(span)
  sidecar.signal('SIGSTOP')
  await rest(durationOf(chance, longest), signal)
  sidecar.signal('SIGCONT')
  span.until = Date.now()
  tally.add('stopped by SIGSTOP')
  if (span.until - span.from > 15_000) tally.add('frozen for longer than a lease')
}

async function partition(
  { tally }: ReplicaWorld,
  { links }: Replica,
  { chance, signal, longest, lines }: Time & { lines: readonly ('database' | 'service')[] },
): Promise<void> {
  const silent = chance.is(0.5)
  tally.add(`partition from ${lines.join(' and ')}, ${silent ? 'silent' : 'refused'}`)
  for (const line of lines) {
    await links[line].ail(silent ? 'stall' : 'refuse')
    if (!silent) links[line].cutAll()
  }
  await rest(durationOf(chance, longest), signal)
  for (const line of lines) await links[line].restore()
}

/** Mostly within a lease, sometimes longer than it. */
function durationOf(chance: Chance, longest: number): number {
  const kind = chance.next()
  if (kind < 0.5) return chance.int(1000, Math.min(3000, longest))
  return kind < 0.8 ? chance.int(1000, Math.min(20_000, longest)) : chance.int(1000, longest)
}

/** SIGTERM: 0 once it runs; before that the system's own end. */
export function judgeStop(world: ReplicaWorld, replica: Replica, life: Life | null): void {
  const { number } = replica
  if (life === null) return world.violated('exit', `SIGTERM did not end replica ${number} within its grace`)
  if (life.code === 0 || (!life.ready && life.signal === 'SIGTERM')) return
  diedAlone(world, replica, life)
}

/** It was not ended by us, and ended: whether it had a reason is known once the database can be asked (see exits.ts). */
function diedAlone({ tally }: ReplicaWorld, replica: Replica, life: Life): void {
  replica.diedAlone.push(life)
  tally.add(`ended by itself with ${life.code ?? life.signal}`)
}

export async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => undefined)
}
