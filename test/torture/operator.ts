import { existsSync, rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from '../simulation/chance.ts'
import type { World } from './world.ts'

/** Share of the processes whose store an operator damages. */
const MEDDLES = 0.15
/** A process that lost its files has ended by then, milliseconds. */
const ENDS = 30_000

/**
 * An operator deletes a file of the store under the running program. It has to notice, to end with
 * 1, and to leave the store complete: the oracle at the end of the round knows nothing of it.
 * @returns whether a life ended by it.
 */
export async function meddle(world: World, chance: Chance): Promise<boolean> {
  const { sidecar, store, tally } = world
  const side = chance.pick(['', '', '-wal', '-shm'])
  // What is on a full disk cannot be written back.
  const full = world.full !== null && world.full.until === null
  if (!chance.is(MEDDLES) || full || !sidecar.life.ready) return false
  tally.add(`files deleted: sidecar.db${side}`)
  world.meddled = true
  rmSync(store + side, { force: true })
  const life = await Promise.race([sidecar.ended(), pause(ENDS, null)])
  world.meddled = false
  if (life === null) world.violated('operator', `sidecar.db${side} was deleted, and the program goes on`)
  else if (life.code !== 1)
    world.violated(
      'operator',
      `sidecar.db${side} was deleted, and the program ended with ${life.code ?? life.signal}`,
    )
  if (!existsSync(store)) world.violated('operator', `sidecar.db${side} was deleted, and there is no store`)
  return life !== null
}
