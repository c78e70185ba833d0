import { Chance } from '../simulation/chance.ts'
import { programOf, type Build } from '../support/build.ts'
import { readCommand } from '../support/command.ts'
import { useTorturePorts } from '../support/listen.ts'
import { readOptions, USAGE, type Options } from './options.ts'
import { describeFailovers, measureFailovers, tooSlow, type Failover } from './replicas/failover.ts'
import { playReplicas, playSteadyReplicas, type ReplicaStorm } from './replicas/round.ts'
import { describeFaults, table } from './report.ts'
import { playSteady, playStorm, type Outcome, type Storm } from './round.ts'

/**
 * The program as a process of its own, between a network, a service, an application, a disk and a
 * machine that all fail. Exits 1 when something was lost, reported twice in two ways, or is
 * otherwise not as README's "Guarantees" says.
 */

/** SIGKILLs of one round, where kills are counted. */
const KILLS = 40
/** The longest round of kills, milliseconds. */
const LONGEST_ROUND = 300_000
/** The same, of several processes. */
const REPLICA_KILLS = 20
/** Lives of the rounds of `--minutes`, milliseconds: mostly too short for anything, or long. */
const LIVES = [600, 3000, 15_000]
/** What of the minutes goes to the life that is left alone. */
const STEADY = 1 / 3

if (import.meta.main) {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  // At once: at a natural end Node 24 may wait for ever for a socket that was reset.
  process.exit(await main())
}

async function main(): Promise<number> {
  const options = readCommand(USAGE, (args) => readOptions(args, Date.now()))
  useTorturePorts()
  const begun = performance.now()
  const build = programOf(options.program)
  const { failovers, replicas } = options
  if (failovers !== null && replicas !== null) return await playFailovers(options, { build, replicas })
  const outcomes = await (replicas === null
    ? playAll(options, build)
    : playReplicaRounds(options, { build, replicas }))
  process.stdout.write(`${table(outcomes, (performance.now() - begun) / 1000)}\n`)
  return outcomes.some(({ faults }) => faults.length > 0) ? 1 : 0
}

async function playAll(options: Options, build: Build): Promise<Outcome[]> {
  const { minutes, kills, rounds, parallel } = options
  const stormsEnd = performance.now() + minutes * 60_000 * (1 - STEADY)
  const outcomes: Outcome[] = []
  let seed = options.seed
  let wanted = kills ?? 0
  const wrong = (): boolean => outcomes.some(({ faults }) => faults.length > 0)
  const more = (): boolean => {
    if (wrong()) return false
    if (kills !== null) return wanted > 0
    if (rounds !== null) return seed < options.seed + rounds
    return performance.now() < stormsEnd
  }
  const lane = async (): Promise<void> => {
    while (more()) {
      const own = seed++
      const most = Math.min(KILLS, wanted)
      wanted -= most
      const outcome = await playStorm(
        { seed: own, build, mount: own % 4 < 2 },
        stormOf(own, kills === null ? null : most),
      )
      // The kills that a round which ended early left out come in the next.
      wanted += Math.max(0, most - killsOf(outcome))
      outcomes.push(outcome)
      process.stdout.write(`${progress(outcomes, options)}\n`)
      if (outcome.faults.length > 0) process.stdout.write(`${describeFaults(outcome)}\n`)
    }
  }
  await Promise.all(Array.from({ length: parallel }, lane))
  if (kills === null && rounds === null && !wrong()) {
    const outcome = await playSteady({ seed: polling(seed), build, mount: false }, minutes * 60_000 * STEADY)
    outcomes.push(outcome)
    if (outcome.faults.length > 0) process.stdout.write(`${describeFaults(outcome)}\n`)
  }
  return outcomes
}

/** Most of a failover is to wait: several worlds at once do not disturb each other. */
async function playFailovers(
  { failovers, parallel, seed: first }: Options,
  world: { build: Build; replicas: number },
): Promise<number> {
  const measured: Failover[] = []
  const times = Math.ceil((failovers ?? 0) / parallel)
  const lanes = Array.from({ length: parallel }, (_, lane) =>
    measureFailovers({ seed: first + lane, ...world }, { times }, (failover) => {
      measured.push(failover)
      const slowest = Math.max(...failover.sessions) / 1000
      const stream = failover.stream / 1000
      process.stdout.write(
        `${failover.way}: stream ${stream.toFixed(2)} s, sessions ${slowest.toFixed(2)} s\n`,
      )
    }),
  )
  await Promise.all(lanes)
  process.stdout.write(`${describeFailovers(measured)}\n`)
  return tooSlow(measured).length > 0 ? 1 : 0
}

/** One round after the other: the processes of one are enough for the machine. */
async function playReplicaRounds(
  { minutes, kills, rounds, seed: first }: Options,
  world: { build: Build; replicas: number },
): Promise<Outcome[]> {
  const stormsEnd = performance.now() + minutes * 60_000 * (1 - STEADY)
  const outcomes: Outcome[] = []
  const failed = (outcome: Outcome): boolean => {
    if (outcome.faults.length === 0) return false
    process.stdout.write(`${describeFaults(outcome, `--store postgres --replicas ${world.replicas}`)}\n`)
    return true
  }
  let wanted = kills ?? 0
  for (let seed = first; ; seed++) {
    const over = kills === null ? performance.now() >= stormsEnd : wanted <= 0
    if (rounds === null ? over : seed >= first + rounds) {
      if (kills !== null || rounds !== null) return outcomes
      outcomes.push(await playSteadyReplicas({ seed: polling(seed), ...world }, minutes * 60_000 * STEADY))
      outcomes.slice(-1).forEach(failed)
      return outcomes
    }
    const most = kills === null ? null : Math.min(REPLICA_KILLS, wanted)
    const outcome = await playReplicas({ seed, ...world }, replicaStormOf(seed, most))
    wanted -= killsOf(outcome)
    outcomes.push(outcome)
    process.stdout.write(`${progress(outcomes, { kills })}\n`)
    if (failed(outcome)) return outcomes
  }
}

function stormOf(seed: number, kills: number | null): Storm {
  if (kills !== null) return { kills, ms: LONGEST_ROUND, longest: 600, early: 0.4 }
  const chance = new Chance(seed, 'storm')
  return { kills: null, ms: chance.int(10_000, 30_000), longest: chance.pick(LIVES), early: 0.2 }
}

/** Where kills are counted, a replica fails every few seconds, so that a kill comes amid the takeover after another one. */
function replicaStormOf(seed: number, kills: number | null): ReplicaStorm {
  const chance = new Chance(seed, 'storm')
  const ms = kills === null ? chance.int(40_000, 80_000) : LONGEST_ROUND
  const between = chance.pick(kills === null ? [3000, 8000, 25_000] : [2000, 4000, 8000])
  const longest = chance.pick(kills === null ? [5000, 40_000, 120_000] : [3000, 5000, 20_000])
  return { kills, ms, between, longest }
}

/**
 * A session that is deleted makes no webhook and no event: without polling, a life finds it only when it starts. So the life
 * that is left alone has a seed with polling.
 */
function polling(seed: number): number {
  return seed % 3 === 0 ? seed + 1 : seed
}

function killsOf({ tally }: Outcome): number {
  return tally.get('killed by SIGKILL') + tally.get('killed by SIGKILL while starting')
}

function progress(outcomes: readonly Outcome[], { kills }: Pick<Options, 'kills'>): string {
  const done = outcomes.reduce((sum, outcome) => sum + killsOf(outcome), 0)
  const facts = outcomes.reduce((sum, { tally }) => sum + tally.get('facts'), 0)
  return `${outcomes.length} rounds, ${done}${kills === null ? '' : ` of ${kills}`} SIGKILLs, ${facts} facts`
}
