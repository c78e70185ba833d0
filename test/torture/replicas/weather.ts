import type { Chance } from '../../simulation/chance.ts'
import { drawFaults, type FaultName } from '../faults.ts'
import { AILMENTS, STROKES, type Link } from '../link.ts'
import { resumeAll } from '../weather.ts'
import { rest } from './lives.ts'
import type { Replica } from './replica.ts'
import type { ReplicaWorld } from './world.ts'

/** How long what lasts may last, milliseconds. */
const LASTING = 2500
/** Between two acts, milliseconds. */
const BETWEEN = 700
/** A token that is rejected, and a cursor that is lost, are played with one process. */
const ELSEWHERE: ReadonlySet<FaultName> = new Set(['lose_cursors', 'unauthorized'])

type Act = (world: ReplicaWorld, chance: Chance, signal: AbortSignal) => Promise<void>

const ACTS: readonly (readonly [weight: number, act: Act])[] = [
  [30, strikeLink],
  [14, ailLink],
  [16, setFaults],
  [8, changeMood],
  [6, terminate],
  [3, killPostgres],
  [0.3, killService],
]

/** Goes wrong around the replicas until `signal`; ends with everything as it should be. */
export async function blow(world: ReplicaWorld, signal: AbortSignal): Promise<void> {
  const chance = world.draw('weather')
  const lasting: Promise<void>[] = []
  while (!signal.aborted) {
    await rest(chance.int(0, BETWEEN), signal)
    if (signal.aborted) break
    // While the service or the database is down, nothing can be asked of it.
    lasting.push(
      chance
        .draw(ACTS)(world, chance, signal)
        .catch(() => world.tally.add('weather acts in vain')),
    )
  }
  await Promise.all(lasting)
  world.mood.handlers = 0
  world.mood.tools = 0
  for (const replica of world.replicas) await replica.restore()
  await world.service.faults({})
}

async function strikeLink(world: ReplicaWorld, chance: Chance): Promise<void> {
  const [name, link] = drawLink(world, chance)
  const stroke = chance.pick(STROKES)
  world.tally.add(`proxy fault ${stroke}`, link.strike(stroke))
  world.tally.add(`proxy line ${name}`)
}

async function ailLink(world: ReplicaWorld, chance: Chance, signal: AbortSignal): Promise<void> {
  const [name, link] = drawLink(world, chance)
  // A partition lasts as long as it does.
  if (link.ailing) return
  const ailment = chance.pick(AILMENTS)
  await link.ail(ailment)
  world.tally.add(`proxy fault ${ailment}`)
  world.tally.add(`proxy line ${name}`)
  await rest(chance.int(50, LASTING), signal)
  await link.restore()
}

async function setFaults(world: ReplicaWorld, chance: Chance, signal: AbortSignal): Promise<void> {
  const settings = drawFaults(chance, ELSEWHERE)
  await world.service.faults(settings)
  for (const name of Object.keys(settings)) world.tally.add(`service fault ${name}`)
  await rest(chance.int(50, LASTING), signal)
  await world.service.faults({})
}

async function changeMood(world: ReplicaWorld, chance: Chance, signal: AbortSignal): Promise<void> {
  const { mood } = world
  mood.handlers = chance.next() * 0.7
  mood.tools = chance.next() * 0.7
  await rest(chance.int(50, LASTING), signal)
  // An operator resumes handlers that answered 410.
  await resumeAll(world.sidecar)
  mood.handlers = 0
  mood.tools = 0
}

async function terminate({ books, replicas, tally }: ReplicaWorld): Promise<void> {
  const span = { from: Date.now(), until: null as number | null }
  for (const { cutOff } of replicas) cutOff.push(span)
  try {
    tally.add('database connections terminated', await books.terminate(0.5))
  } finally {
    span.until = Date.now() + 1
  }
}

async function killPostgres(world: ReplicaWorld, chance: Chance, signal: AbortSignal): Promise<void> {
  const { postgres, replicas, tally } = world
  // It is down already.
  if (replicas.some(isDown)) return
  const span = { from: Date.now(), until: null as number | null }
  for (const { cutOff } of replicas) cutOff.push(span)
  tally.add('database killed')
  await postgres.kill()
  await rest(chance.is(0.7) ? chance.int(0, 500) : chance.int(500, 10_000), signal)
  await postgres.run()
  span.until = Date.now()
  await world.examine()
}

function isDown({ cutOff }: Replica): boolean {
  return cutOff.some(({ until }) => until === null)
}

async function killService({ service, tally }: ReplicaWorld): Promise<void> {
  tally.add('service killed')
  await service.restart()
}

function drawLink({ replicas }: ReplicaWorld, chance: Chance): [string, Link] {
  return chance.pick(Object.entries(chance.pick(replicas).links))
}
