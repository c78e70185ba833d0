import { parseArgs } from 'node:util'
import { Coverage } from './coverage.ts'
import { exhaust, SEED } from './exhaustive.ts'
import { aimed } from './faults.ts'
import { FIXED } from './fixed.ts'
import { KNOWN_SITES } from './known-sites.ts'
import { tryMutants } from './mutants/table.ts'
import { faultsText, parseFaults } from './replay.ts'
import { run, type Mode, type Outcome, type RunOptions } from './run.ts'
import { shrink } from './shrink.ts'

/**
 * `npm run simulate -- --seeds N [--seed S] [--mode safety|liveness]`, `--exhaustive [--pairs N]` or `--mutants`.
 * Exits 1 when an invariant broke, a run could not be repeated, or too little was tried.
 */

/** So often a seed is played twice: the hash of all that happened must be the same. */
const TWICE = 50
/** From so many seeds on, every place and fault must have been tried. */
const GATE = 2000
const PROGRESS = 5000
/** Seeds that may be spent on a place that was not crashed. */
const AIMED = 400

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    seed: { type: 'string' },
    mode: { type: 'string' },
    faults: { type: 'string' },
    scenario: { type: 'string' },
    exhaustive: { type: 'boolean', default: false },
    pairs: { type: 'string', default: '0' },
    mutants: { type: 'boolean', default: false },
    brief: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
})

const scenario = values.scenario === undefined ? undefined : FIXED[values.scenario]
const first = scenario === undefined ? Number(values.seed ?? 1) : SEED
const one = (values.seed !== undefined || scenario !== undefined) && values.seeds === undefined
const count = one ? 1 : Number(values.seeds ?? 1000)
const modes: Mode[] = values.mode === 'safety' ? ['safety'] : ['liveness']

if (values.exhaustive) process.exitCode = (await exhaust(values.only, Number(values.pairs))) ? 0 : 1
else if (values.mutants) process.exitCode = (await tryMutants(count, values.only)) ? 0 : 1
else process.exitCode = (await simulate()) ? 0 : 1

async function simulate(): Promise<boolean> {
  const coverage = new Coverage()
  const begun = performance.now()
  let told = begun
  let happened = 0
  for (let seed = first; seed < first + count; seed++) {
    for (const mode of modes) {
      const options: RunOptions = {
        seed,
        mode,
        ...(scenario === undefined ? {} : { scenario }),
        ...(values.faults === undefined ? {} : { faults: parseFaults(values.faults) }),
      }
      const outcome = await run(options)
      coverage.add(outcome)
      happened += outcome.happened
      if (outcome.violation !== null) return await report(outcome, options)
      if (seed % TWICE === 0 && (await run(options)).hash !== outcome.hash) {
        console.log(`seed ${seed} does not repeat: something came in by another door than a port`)
        return false
      }
    }
    if (!values.brief && performance.now() - told > PROGRESS) {
      told = performance.now()
      console.log(`${seed - first + 1} seeds, ${rate(seed - first + 1, begun)} a minute`)
    }
  }
  if (values.brief) return true
  console.log(
    `${count} seeds held, ${rate(count, begun)} a minute; ${happened} things happened; ${coverage.summary()}`,
  )
  if (count < GATE) return true
  if (!(await tryRest(coverage))) return false
  const gaps = coverage.gaps()
  for (const gap of gaps) console.log(`not tried: ${gap}`)
  return gaps.length === 0
}

/** Aims at the places that were not crashed yet, one by one. */
async function tryRest(coverage: Coverage): Promise<boolean> {
  for (const place of coverage.missing()) {
    for (let seed = first; seed < first + AIMED && coverage.missing().includes(place); seed++) {
      const options: RunOptions = { seed, mode: 'liveness', plan: aimed(seed, KNOWN_SITES, place) }
      const outcome = await run(options)
      coverage.add(outcome)
      if (outcome.violation !== null) return await report(outcome, { seed, mode: 'liveness' })
    }
  }
  return true
}

async function report(outcome: Outcome, options: RunOptions): Promise<boolean> {
  if (values.brief) {
    const { seed, violation } = outcome
    console.log(JSON.stringify({ seed, ...violation }))
    return false
  }
  console.log(`seed ${outcome.seed}: ${outcome.violation?.invariant}: ${outcome.violation?.message}`)
  const shortest = values.faults === undefined ? await shrink(outcome, options) : outcome
  for (const line of shortest.tail) console.log(line)
  const faults = shortest.fired.map(({ site, when, fault }) => `${fault} ${when} ${site}`).join('; ')
  console.log(`${shortest.violation?.invariant}: ${shortest.violation?.message}`)
  console.log(`with ${shortest.fired.length} faults: ${faults || 'none'}`)
  console.log(
    `npm run simulate -- --seed ${options.seed} --mode ${options.mode} --faults '${faultsText(shortest.fired)}'`,
  )
  return false
}

function rate(seeds: number, begun: number): number {
  return Math.round((seeds / (performance.now() - begun)) * 60_000)
}
