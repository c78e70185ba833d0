import { readCommand } from '../support/command.ts'
import { campaign } from './campaign.ts'
import { gaps, isTried, untriedOf } from './coverage.ts'
import { exhaust } from './exhaustive.ts'
import { aimed } from './faults.ts'
import { FIXED } from './fixed.ts'
import { JournalError, openJournal, saveJournal, type Journal } from './journal.ts'
import { KNOWN_SITES } from './known-sites.ts'
import { REPLAY, tryMutants } from './mutants/table.ts'
import { readOptions, USAGE } from './options.ts'
import { REGRESSIONS, replay } from './regressions.ts'
import { faultsText, parseFaults } from './replay.ts'
import { cpuSince, progressLine, replayLine, summary } from './report.ts'
import { run, type Outcome, type RunOptions } from './run.ts'
import { shrink } from './shrink.ts'
import { count as countIn, type Broken, type Tally } from './tally.ts'

/**
 * `npm run simulate` (see USAGE). Exits 1 when an invariant broke, a run could not be repeated, or too little was tried.
 * Ctrl-C ends it with what was done so far; with a journal the same command goes on from there, after a kill as well.
 */

/** From so many seeds on, every place and fault must have been tried. */
const GATE = 800
/** Milliseconds between lines of progress. */
const PROGRESS = 10_000
/** Seeds that may be spent on one place or fault that was not tried. */
const AIMED = 400
/** Signals so close to one another are one, milliseconds. */
const TWICE = 500
/** Ways of breaking that are made short. */
const SHRUNK = 10

const options = readCommand(USAGE, readOptions)
const { seed: first, seeds, mode } = options
const { replicas } = options
const several = replicas === null ? {} : { replicas }
const scenario = options.scenario === null ? undefined : FIXED[options.scenario]

// A reader that has read enough closes the pipe.
process.stdout.once('error', () => process.exit(1))
process.exitCode = (await chosen().catch(refuse)) ? 0 : 1

function chosen(): Promise<boolean> {
  switch (options.play) {
    case 'exhaustive':
      return exhaust(options.only, options.pairs, options.threads)
    case 'mutants':
      return tryMutants(seeds, options.only, options.write)
    case 'replays':
      return playReplays()
    case 'brief':
      return playBriefly()
    case 'one':
      return playOne()
    case 'many':
      return playMany()
  }
}

function refuse(error: unknown): false {
  if (!(error instanceof JournalError)) throw error
  console.error(error.message)
  return false
}

/** For programs: says nothing until the first seed breaks. */
async function playBriefly(): Promise<boolean> {
  for (let seed = first; seed < first + seeds; seed++) {
    const { violation } = await run({ seed, mode, ...several })
    if (violation === null) continue
    console.log(JSON.stringify({ seed, ...violation }))
    return false
  }
  return true
}

/** For programs, too: the bugs that were found once. */
async function playReplays(): Promise<boolean> {
  for (const regression of REGRESSIONS) {
    if (options.only !== undefined && !regression.name.includes(options.only)) continue
    const { violation } = await replay(regression)
    if (violation === null) continue
    console.log(JSON.stringify({ seed: REPLAY, ...violation, replay: regression.name }))
    return false
  }
  return true
}

async function playOne(): Promise<boolean> {
  const { faults } = options
  const wanted: RunOptions = {
    seed: first,
    mode,
    ...several,
    ...(scenario === undefined ? {} : { scenario }),
    ...(faults === null ? {} : { faults }),
  }
  const outcome = await run(wanted)
  if ((await run(wanted)).hash !== outcome.hash) {
    console.log(`seed ${first} does not repeat: something came in by another door than a port`)
    return false
  }
  if (outcome.violation === null) {
    console.log(`seed ${first} held: ${outcome.fired.length} faults, trace ${outcome.hash}`)
    return true
  }
  const shortest = faults === null ? await shrink(outcome, wanted) : outcome
  for (const line of shortest.tail) console.log(line)
  print(shortest)
  return false
}

async function playMany(): Promise<boolean> {
  const { minutes, threads } = options
  const stop = new AbortController()
  endOnSignal(stop)
  if (minutes !== null) setTimeout(() => stop.abort(), minutes * 60_000).unref()
  const journal = openJournal(options.journal, mode, first)
  const { tally } = journal
  const spent = journal.cpu
  const cpu = process.cpuUsage()
  const save = (): void => {
    journal.cpu = spent + cpuSince(cpu)
    if (options.journal !== null) saveJournal(options.journal, journal)
  }
  const onProgress = progress(journal, save)
  await campaign({ journal, end: first + seeds, threads, replicas, stop: stop.signal, onProgress })
  save()
  for (const line of summary(tally, journal.cpu)) console.log(line)
  if (tally.seeds >= GATE && replicas === null) await tryRest(tally)
  await printBroken([...tally.broken.values()].sort((a, b) => a.seed - b.seed))
  const untried = tally.seeds < GATE || replicas !== null ? [] : gaps(tally)
  for (const gap of untried) console.log(`not tried: ${gap}`)
  return tally.broken.size === 0 && untried.length === 0
}

/** Ctrl-C ends it with a summary, a second one at once. A terminal or a `timeout` may send each twice. */
function endOnSignal(stop: AbortController): void {
  let firstAt: number | null = null
  process.on('SIGINT', () => {
    firstAt ??= performance.now()
    if (performance.now() - firstAt > TWICE) process.exit(130)
    stop.abort()
  })
}

/** In place on a terminal, a line now and then elsewhere. */
function progress(journal: Journal, save: () => void): () => void {
  const inPlace = process.stdout.isTTY
  let printed = performance.now()
  return () => {
    if (performance.now() - printed < (inPlace ? 500 : PROGRESS)) return
    printed = performance.now()
    save()
    const line = progressLine(journal.tally, journal.cpu)
    process.stdout.write(inPlace ? `\r\u001B[K${line}\r` : `${line}\n`)
  }
}

/** Aims at what was not tried yet, one by one: in 800 seeds chance may leave out a rare place or fault. */
async function tryRest(tally: Tally): Promise<void> {
  for (const aim of untriedOf(tally)) {
    for (let seed = first; seed < first + AIMED && !isTried(tally, aim); seed++)
      countIn(tally, await run({ seed, mode: 'liveness', plan: aimed(seed, KNOWN_SITES, aim) }))
  }
}

async function printBroken(broken: readonly Broken[]): Promise<void> {
  for (const [index, each] of broken.entries()) {
    console.log(`\n${each.times} times, at first with seed ${each.seed}, after ${each.after}:`)
    const found: RunOptions = {
      seed: each.seed,
      mode: each.mode,
      ...several,
      faults: parseFaults(each.faults),
    }
    const outcome = index < SHRUNK ? await run(found) : null
    if (outcome === null || outcome.violation === null) {
      console.log(`${each.invariant}: ${each.message}\n${replayLine(each, replicas)}`)
    } else print(await shrink(outcome, found))
  }
}

function print({ seed, mode: played, violation, fired }: Outcome): void {
  const faults = fired.map(({ site, when, fault }) => `${fault} ${when} ${site}`).join('; ')
  console.log(`${violation?.invariant}: ${violation?.message}`)
  console.log(`with ${fired.length} faults: ${faults || 'none'}`)
  const of = options.scenario === null ? `--seed ${seed}` : `--scenario '${options.scenario}'`
  const shared = replicas === null ? '' : ` --replicas ${replicas}`
  console.log(`npm run simulate -- ${of}${shared} --mode ${played} --faults '${faultsText(fired)}'`)
}
