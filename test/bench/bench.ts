import { messageOf } from '../../src/std/errors.ts'
import { readCommand } from '../support/command.ts'
import { hasGrown } from './grown.ts'
import type { Measure } from './measure.ts'
import { readOptions, USAGE, type Filled, type Options } from './options.ts'
import { printProfile } from './profile.ts'
import { machine, renderMachine, renderOutcomes } from './report.ts'
import { runScenarios } from './run.ts'
import { bigStore } from './scenario/big-store.ts'
import { backlog } from './scenario/backlog.ts'
import { burst } from './scenario/burst.ts'
import { calls } from './scenario/calls.ts'
import { catchUp } from './scenario/catch-up.ts'
import { commands } from './scenario/commands.ts'
import { consolePages } from './scenario/console.ts'
import { earlierOf } from './scenario/earlier.ts'
import { emulatorIdle } from './scenario/emulator-idle.ts'
import { emulatorStart } from './scenario/emulator-start.ts'
import { emulatorStream } from './scenario/emulator-stream.ts'
import { GROWN_DATABASE, grownDatabase, openTransaction } from './scenario/grown-database.ts'
import { grown, GROWN } from './scenario/grown.ts'
import { beside, postgres, postgresLatency, together } from './scenario/postgres.ts'
import { relay } from './scenario/relay.ts'
import { requests } from './scenario/requests.ts'
import { starts } from './scenario/start.ts'
import { steady } from './scenario/steady.ts'
import { webhooks } from './scenario/webhooks.ts'
import { Workbench } from './workbench.ts'

/** Measures the sidecar and the emulator against what one would write by hand, and prints one table. Exits with 1 when a floor is missed or a
 * work could not be measured. */

const scenariosOf = ({ filled, against }: Options) => (against === null ? all(filled) : earlierOf(against))

const all = (filled: Filled) => [
  burst,
  grown(filled),
  steady,
  catchUp,
  webhooks,
  calls,
  requests,
  starts,
  relay,
  bigStore,
  commands,
  consolePages,
  emulatorStream,
  emulatorIdle,
  emulatorStart,
  backlog,
  postgres,
  ...beside,
  ...together,
  postgresLatency,
  openTransaction,
  grownDatabase(filled),
]

async function main(options: Options): Promise<number> {
  await using bench = new Workbench(options.scale, options.settings)
  if (options.profile) {
    process.stdout.write(
      await printProfile(
        bench,
        options.only.some((name) => name.startsWith('postgres')),
      ),
    )
    return 0
  }
  const { only, runs, filled } = options
  /** What takes minutes to fill is measured on request. */
  const isReady = (name: string): boolean => (name === GROWN ? hasGrown(filled) : name !== GROWN_DATABASE)
  const wanted = ({ name }: Measure): boolean =>
    only.length === 0 ? isReady(name) : only.some((start) => name.startsWith(start))
  const { outcomes, disks, faults } = await runScenarios(
    scenariosOf(options),
    wanted,
    runs,
    bench,
    (text) => void process.stderr.write(`${text}\n`),
  )
  if (outcomes.length + faults.length === 0) throw new TypeError('--only names nothing that is measured')
  const rows = outcomes.map(({ measure: { name, unit }, ...figures }) => ({ name, unit, ...figures }))
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ machine: machine(), scale: options.scale, settings: options.settings, fdatasync: disks, rows }, null, 2)}\n`
      : `${renderOutcomes(outcomes)}\n${renderMachine(disks, runs)}`,
  )
  for (const fault of faults) process.stderr.write(`not measured: ${fault}\n`)
  return faults.length === 0 && outcomes.every(({ verdict }) => verdict !== 'MISS') ? 0 : 1
}

// An interrupt ends the bench as a fault does: what it started ends with it.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))

try {
  process.exitCode = await main(readCommand(USAGE, readOptions))
} catch (error) {
  process.stderr.write(`${messageOf(error)}\n`)
  process.exitCode = 2
}
