import { withChattySession } from './chatty.ts'
import { Fairness } from './oracle/fairness.ts'
import { atEdges } from './edges.ts'
import { drawn, only, type Fault, type Fired, type Plan } from './faults.ts'
import { busy, unsettled, unsound } from './oracle/rest.ts'
import { scrapeFault } from './oracle/scrape.ts'
import { drawScenario, drawShared, type Scenario } from './scenario.ts'
import { hangSession, withHangingSession } from './hanging.ts'
import { KNOWN_SITES, REPLICA_SITES, SCOPE_SITES, UPKEEP_SITES } from './known-sites.ts'
import { Simulation } from './simulation.ts'
import { Weather } from './weather.ts'

export type Mode = 'safety' | 'liveness'

export interface RunOptions {
  seed: number
  mode: Mode
  /** In place of the faults that the seed draws: which, by the number of the passage. */
  faults?: ReadonlyMap<number, Fault>
  /** In place of the faults, too. */
  plan?: Plan
  /** In place of the scenario that the seed draws. */
  scenario?: Scenario
  /** Processes on the store; default: 1. */
  replicas?: number
}

export interface Outcome {
  seed: number
  mode: Mode
  hash: string
  /** null: all is well. */
  violation: { invariant: string; message: string } | null
  fired: Fired[]
  passed: ReadonlyMap<string, number>
  tail: string[]
  /** The counts of one seed. */
  happened: number
  lives: number
  crashes: number
}

/** All must settle within so long once nothing goes wrong any more, milliseconds. */
const PATIENCE = 600_000
const LOOK = 1000
const WEATHER = 500

/** Plays one seed. The same options give the same outcome, to the hash of everything that happened. */
export async function run(options: RunOptions): Promise<Outcome> {
  const { seed, mode } = options
  const count = options.replicas ?? 1
  const drawnFor = count > 1 ? drawShared(seed, count) : drawScenario(seed)
  const scenario =
    options.scenario ?? withHangingSession(withChattySession(atEdges(drawnFor, seed), seed), seed)
  const plan =
    options.plan ??
    (options.faults === undefined && scenario.hanging?.isAlone !== true
      ? drawn(seed, sitesOf(scenario), count)
      : only(options.faults ?? new Map()))
  const simulation = new Simulation(seed, scenario, plan)
  const failures: unknown[] = []
  const onRejection = (reason: unknown): void => void failures.push(reason)
  process.on('unhandledRejection', onRejection)
  try {
    await play(simulation, mode)
    // An unhandled rejection is reported only after the current turn of the event loop.
    await new Promise<void>((resolve) => void setImmediate(resolve))
  } catch (error) {
    failures.push(error)
  } finally {
    if (failures.length > 0) simulation.trace.broken('unhandled', String((failures[0] as Error).stack))
    process.off('unhandledRejection', onRejection)
    simulation.close()
  }
  const { trace, sites, agenda, lives, crashes } = simulation
  const { violation } = trace
  return {
    seed,
    mode,
    hash: trace.hash,
    violation: violation === null ? null : { invariant: violation.invariant, message: violation.message },
    fired: sites.fired,
    passed: sites.passed,
    tail: trace.tail(40),
    happened: agenda.happened,
    lives,
    crashes,
  }
}

/** Places at which crashes are aimed. */
function sitesOf({ upkeep, scope = null, replicas }: Scenario): readonly string[] {
  const sites = upkeep === null ? KNOWN_SITES : [...KNOWN_SITES, ...UPKEEP_SITES]
  if (replicas !== undefined) return [...sites, ...REPLICA_SITES]
  return scope === null ? sites : [...sites, ...SCOPE_SITES]
}

async function play(simulation: Simulation, mode: Mode): Promise<void> {
  const { agenda, trace, scenario, sites, watch } = simulation
  watch.fairness = new Fairness(simulation)
  const over = (): boolean => {
    watch.look()
    return trace.violation !== null
  }
  const end = simulation.begin + scenario.faultsUntil
  const weather = new Weather(simulation)
  hangSession(simulation)
  const tick = (): void => {
    if (sites.quiet) return
    weather.change()
    agenda.in(WEATHER, tick)
  }
  agenda.in(simulation.begin - agenda.now + WEATHER, tick)
  await agenda.runUntil(end, over)
  if (over()) return
  const unsoundness = unsound(simulation)
  if (unsoundness !== null) return trace.broken(unsoundness.invariant, unsoundness.message)
  if (mode === 'safety') return
  simulation.calm()
  let limit = agenda.now + PATIENCE
  let { steps } = simulation.agent
  let fault: { invariant: string; message: string } | null = null
  while (agenda.now < limit && !over()) {
    await agenda.runUntil(agenda.now + LOOK, over)
    // An answer that is taken in calm may stay listed for most of it. Five calls of two minutes each that cannot be answered
    // take all of it. All must settle within ten minutes after that.
    const { agent } = simulation
    if (agent.lingering > 0 || agent.steps > steps) limit = agenda.now + PATIENCE
    steps = agent.steps
    if (agenda.now < limit && busy(simulation)) continue
    fault = unsettled(simulation)
    if (fault === null) break
  }
  if (fault !== null) return trace.broken(fault.invariant, `after ten minutes of calm: ${fault.message}`)
  for (const life of simulation.all) {
    const wrong = await scrapeFault(life)
    if (wrong !== null) return trace.broken(wrong.invariant, wrong.message)
  }
  const lives = simulation.posts.flatMap(({ life }) => life ?? [])
  if (over()) return
  for (const post of simulation.posts) simulation.restart(post)
  await agenda.runUntil(agenda.now + 60_000, () => over() || lives.every(({ alive }) => !alive))
}
