import { setTimeout as pause } from 'node:timers/promises'
import type { Chance } from '../simulation/chance.ts'
import { drawFaults, type FaultName } from './faults.ts'
import { AILMENTS, STROKES, type Link } from './link.ts'
import type { Sidecar } from './sidecar.ts'
import type { World } from './world.ts'

/** How long what lasts may last, milliseconds. */
const LASTING = 2500
/** Between two acts, milliseconds. */
const BETWEEN = 400
/** Share of the rounds in which the service loses cursors: their transcripts may have gaps. */
const LOSES_CURSORS = 0.1

type Act = (world: World, chance: Chance) => Promise<void>

/** What goes wrong around the program, each with how often. */
const ACTS: readonly (readonly [weight: number, act: Act])[] = [
  [30, strikeLink],
  [14, ailLink],
  [22, setFaults],
  [10, changeMood],
  [1, fillDisk],
  [0.5, changeToken],
  [0.3, killService],
]

/** Goes wrong again and again until `signal`; ends with everything as it should be. */
export async function blow(world: World, signal: AbortSignal): Promise<void> {
  const chance = world.draw('weather')
  const lasting: Promise<void>[] = []
  world.gaps = chance.is(LOSES_CURSORS)
  while (!signal.aborted) {
    await rest(chance.int(0, BETWEEN), signal)
    const act = chance.draw(ACTS)
    // Each lasts as long as it does, while others begin. While the service is killed, nothing can be asked of it.
    lasting.push(act(world, chance).catch(() => world.tally.add('weather acts in vain')))
  }
  await Promise.all(lasting)
  await clear(world)
}

/** Everything is well again. */
async function clear(world: World): Promise<void> {
  world.mood.handlers = 0
  world.mood.tools = 0
  await world.freeDisk()
  for (const link of Object.values(world.links)) {
    await link.restore()
    link.cutAll()
  }
  await world.service.faults({})
  if (world.rejectedUntil > 0) await world.replaceToken()
}

async function strikeLink(world: World, chance: Chance): Promise<void> {
  const [name, link] = drawLink(world, chance)
  const stroke = chance.pick(STROKES)
  world.tally.add(`proxy fault ${stroke}`, link.strike(stroke))
  world.tally.add(`proxy line ${name}`)
}

async function ailLink(world: World, chance: Chance): Promise<void> {
  const [name, link] = drawLink(world, chance)
  if (link.ailing) return
  const ailment = chance.pick(AILMENTS)
  await link.ail(ailment)
  world.tally.add(`proxy fault ${ailment}`)
  world.tally.add(`proxy line ${name}`)
  await pause(chance.int(50, LASTING))
  await link.restore()
}

async function setFaults(world: World, chance: Chance): Promise<void> {
  const except = new Set<FaultName>(world.gaps ? [] : ['lose_cursors'])
  const settings = drawFaults(chance, except)
  if ((settings.unauthorized ?? 0) > 0) world.rejectedUntil = Infinity
  await world.service.faults(settings)
  for (const name of Object.keys(settings)) world.tally.add(`service fault ${name}`)
  await pause(chance.int(50, LASTING))
  await world.service.faults({})
  // A token that was rejected once is never sent again.
  if ((settings.unauthorized ?? 0) > 0) await world.replaceToken()
}

async function changeMood({ mood, sidecar }: World, chance: Chance): Promise<void> {
  const [handlers, tools] = [chance.next() * 0.7, chance.next() * 0.7]
  mood.handlers = handlers
  mood.tools = tools
  await pause(chance.int(50, LASTING))
  // An operator resumes handlers that answered 410.
  await resumeAll(sidecar)
  if (mood.handlers === handlers) mood.handlers = 0
  if (mood.tools === tools) mood.tools = 0
}

async function fillDisk(world: World, chance: Chance): Promise<void> {
  if (world.full?.until === null || !(await world.fillDisk())) return
  world.tally.add(`disk full (${world.disk.kind === 'tmpfs' ? 'ENOSPC' : 'EFBIG'})`)
  await pause(chance.int(50, LASTING))
  await world.freeDisk()
}

async function changeToken(world: World, chance: Chance): Promise<void> {
  await world.revokeToken()
  world.tally.add('token revoked')
  await pause(chance.int(50, LASTING))
  await world.replaceToken()
}

async function killService(world: World): Promise<void> {
  world.tally.add('service killed')
  await world.service.restart()
}

/** Every handler that is paused takes callbacks again. */
export async function resumeAll(sidecar: Pick<Sidecar, 'ask' | 'list'>): Promise<void> {
  const handlers = await sidecar.list('/api/handlers').catch(() => [])
  for (const { name, state } of handlers)
    if (state === 'paused') await sidecar.ask('POST', `/api/handlers/${String(name)}/resume`)
}

function drawLink({ links }: World, chance: Chance): [string, Link] {
  return chance.pick(Object.entries(links))
}

async function rest(ms: number, signal: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal }).catch(() => undefined)
}
