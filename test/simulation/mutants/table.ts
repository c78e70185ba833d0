import { execFile } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { run } from '../run.ts'
import type { Mutant, NamedTest } from './mutant.ts'
import { MUTANTS } from './mutants.ts'
import { runTest } from './named-test.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const TABLE = join(import.meta.dirname, 'TABLE.md')
/** Time limit of a mutant, milliseconds; a longer one proves nothing. */
const LIMIT = 1_200_000

/** In place of a seed: a replay of a bug that was found once (regressions.ts). */
export const REPLAY = -1
/** In place of a seed: a test, whose file stands in place of the invariant. */
const TEST = -2

/** What a test may need: all of the project but what is made of it. */
const LEFT_OUT = new Set(['.git', 'node_modules', 'dist', 'data'])

interface Sight {
  /** Or REPLAY, or TEST. */
  seed: number
  invariant: string
  message: string
  /** The name of the replay that shows it. */
  replay?: string
}

/**
 * Plants each bug in a copy of the source, plays the seed that TABLE.md has for it and then at most `seeds` from 1 on, and
 * prints bug, seed and invariant. A seed that shows the bug must hold without it. A bug that names a test is shown by that
 * test alone. `write`: keeps what was seen in TABLE.md. `part`: of the bugs with this in
 * their names, or in those of their tests, alone.
 * @returns false when a bug was not seen.
 * @throws {Error} when a bug cannot be planted any more.
 */
export async function tryMutants(seeds: number, part: string | undefined, write: boolean): Promise<boolean> {
  const known = await readTable()
  const chosen = MUTANTS.filter(
    ({ name, test }) => part === undefined || name.includes(part) || test?.file.includes(part) === true,
  )
  const seen = new Map<string, Sight>()
  const passing = new Map<string, Promise<string | null>>()
  await inCopies(chosen, async (mutant, folder) => {
    const { test } = mutant
    const sight =
      test === undefined
        ? await tryOne(folder, mutant, seeds, known.get(mutant.name))
        : await tryTest(folder, { ...mutant, test }, passing)
    if (typeof sight !== 'string') seen.set(mutant.name, sight)
    console.log(`${mutant.name.padEnd(72)} ${typeof sight === 'string' ? sight : textOf(sight)}`)
  })
  console.log(`${seen.size} of ${chosen.length} planted bugs were seen within ${seeds} seeds`)
  if (write) {
    // What was tried and not seen has no seed any more.
    for (const { name } of chosen) known.delete(name)
    await keep(new Map([...known, ...seen]), seeds)
  }
  return seen.size === chosen.length
}

/** @returns the bugs of TABLE.md that their replay does not show any more. */
export async function lostReplays(): Promise<string[]> {
  const known = await readTable()
  const lost: string[] = []
  const shown = MUTANTS.filter(({ name }) => known.get(name)?.seed === REPLAY)
  await inCopies(shown, async (mutant, folder) => {
    const sight = await withBug(folder, mutant, () => playReplay(folder, known.get(mutant.name)))
    if (typeof sight === 'string') lost.push(`${mutant.name}: ${sight}`)
  })
  return lost
}

/** Calls `look` for each bug with a copy of the project, as many at once as there are processors. */
async function inCopies(
  mutants: readonly Mutant[],
  look: (mutant: Mutant, folder: string) => Promise<void>,
): Promise<void> {
  const waiting = [...mutants]
  const work = async (): Promise<void> => {
    await using stack = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'sidecar-mutants-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    for (const name of await readdir(ROOT))
      if (!LEFT_OUT.has(name)) await cp(join(ROOT, name), join(folder, name), { recursive: true })
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift())
      await look(mutant, folder)
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
}

/** @returns the source with the bug in it, by file below src. @throws {Error} where it does not fit any more. */
export async function planted({ name, edits }: Mutant): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const [file, find, put] of edits) {
    const text = texts.get(file) ?? (await readFile(join(ROOT, 'src', file), 'utf8'))
    if (text.split(find).length !== 2) throw new Error(`"${name}" cannot be planted: ${file} has changed`)
    texts.set(
      file,
      text.replace(find, () => put),
    )
  }
  return texts
}

/**
 * The rows of TABLE.md by the name of the bug, in order. A bug that was not seen has the seed 0; the message of one that a
 * replay shows is the name of the replay.
 */
export async function readTable(): Promise<Map<string, Sight>> {
  const rows = (await readFile(TABLE, 'utf8')).split('\n').filter((line) => line.startsWith('| '))
  return new Map(
    rows.slice(2).map((row) => {
      const [, name = '', seed = '', invariant = '', message = ''] = row.split('|').map((cell) => cell.trim())
      return [name, { seed: seedOf(seed), invariant, message }]
    }),
  )
}

/** @returns what shows the bug, or in words why nothing does. */
async function tryOne(
  folder: string,
  mutant: Mutant,
  seeds: number,
  known: Sight | undefined,
): Promise<Sight | string> {
  const { replicas } = mutant
  const several = replicas === undefined ? [] : ['--replicas', String(replicas)]
  return await withBug(folder, mutant, async () => {
    const again =
      known === undefined || known.seed <= 0
        ? 'NOT SEEN'
        : await play(folder, ['--seed', `${known.seed}`, '--seeds', '1', ...several])
    if (typeof again !== 'string') return await without(again, replicas)
    const replayed = await playReplay(folder, known)
    if (typeof replayed !== 'string') return replayed
    const found = await play(folder, ['--seeds', String(seeds), ...several])
    if (typeof found !== 'string') return await without(found, replicas)
    return found === 'NOT SEEN' ? await play(folder, ['--replays']) : found
  })
}

/** Plays the replay that showed a bug before. */
async function playReplay(folder: string, known: Sight | undefined): Promise<Sight | string> {
  if (known?.seed !== REPLAY) return 'NOT SEEN'
  return await play(folder, ['--replays', '--only', known.message])
}

/** `passing`: of each test, why it does not pass without a bug; null: it does. */
async function tryTest(
  folder: string,
  mutant: Mutant & { test: NamedTest },
  passing: Map<string, Promise<string | null>>,
): Promise<Sight | string> {
  const { test } = mutant
  const key = JSON.stringify(test)
  let passes = passing.get(key)
  if (passes === undefined) {
    passes = runTest(folder, test).then(({ kind, message }) =>
      kind === 'passed' ? null : `${kind}: ${message}`,
    )
    passing.set(key, passes)
  }
  const fault = await passes
  if (fault !== null) return `NOT SEEN: ${test.file} does not pass without it, ${fault}`
  const { kind, message } = await withBug(folder, mutant, () => runTest(folder, test))
  if (kind === 'failed') return { seed: TEST, invariant: test.file, message }
  return kind === 'passed' ? 'NOT SEEN' : `does not run: ${message}`
}

async function withBug<T>(folder: string, mutant: Mutant, look: () => Promise<T>): Promise<T> {
  const texts = await planted(mutant)
  for (const [file, text] of texts) await writeFile(join(folder, 'src', file), text)
  try {
    return await look()
  } finally {
    for (const file of texts.keys()) await cp(join(ROOT, 'src', file), join(folder, 'src', file))
  }
}

/** A seed that shows a bug must hold without it. */
async function without(found: Sight, replicas?: number): Promise<Sight | string> {
  const many = replicas === undefined ? {} : { replicas }
  const { violation } = await run({ seed: found.seed, mode: 'liveness', ...many })
  return violation === null ? found : `NOT SEEN: seed ${found.seed} breaks without it, too`
}

async function play(folder: string, seeds: readonly string[]): Promise<Sight | string> {
  const script = join(folder, 'test/simulation/simulate.ts')
  try {
    // To compile 300 modules takes twice as long as a seed.
    const env = { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled') }
    await promisify(execFile)(process.execPath, [script, '--brief', ...seeds], { timeout: LIMIT, env })
    return 'NOT SEEN'
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    const line = stdout.trim().split('\n').at(-1) ?? ''
    // A copy that does not start proves nothing about the simulation.
    if (!line.startsWith('{')) return `does not run: ${(line || stderr).slice(0, 200)}`
    const sight = JSON.parse(line) as Sight
    return isCrash(sight) ? `does not run: seed ${cellOf(sight.seed)}: ${short(sight.message)}` : sight
  }
}

/** A planted bug that names what is gone throws in place of what it is to do: nothing is seen of it. */
export function isCrash({ invariant, message }: Pick<Sight, 'invariant' | 'message'>): boolean {
  return invariant === 'unhandled' && /^(Reference|Syntax|Type)Error\b/.test(message)
}

function textOf({ seed, invariant, message, replay }: Sight): string {
  return `seed ${cellOf(seed).padEnd(6)} ${invariant.padEnd(9)} ${replay ?? short(message)}`
}

function cellOf(seed: number): string {
  return seed === REPLAY ? 'replay' : seed === TEST ? 'test' : String(seed)
}

function seedOf(cell: string): number {
  return cell === 'replay' ? REPLAY : cell === 'test' ? TEST : Number(cell)
}

function short(message: string): string {
  const [line = ''] = message.replace(/^after ten minutes of calm: /, '').split('\n')
  return line.slice(0, 90)
}

const NOT_SEEN: Sight = { seed: 0, invariant: '', message: 'not seen' }

async function keep(seen: ReadonlyMap<string, Sight>, seeds: number): Promise<void> {
  const rows = MUTANTS.map(({ name }) => {
    const { seed, invariant, message, replay }: Sight = seen.get(name) ?? NOT_SEEN
    const what = replay ?? (seed === REPLAY ? message : short(message).replaceAll('|', '/'))
    return `| ${name} | ${cellOf(seed)} | ${invariant} | ${what} |`
  })
  const lines = [
    '# Planted bugs',
    '',
    `Written by \`npm run simulate -- --mutants --seeds ${seeds} --write\`. Each row is a bug that was planted alone in a copy of the`,
    'source. Seeds were run from 1 on, each until everything was idle, and after them the replays of bugs that were found once.',
    '',
    'The seed is one that shows the bug, and that passes without it; 0 means that no seed shows it. For a replay, the last column',
    'has its name. For a bug that the simulation cannot see, the row names a test that fails with the bug and passes without it.',
    'The command tries the seeds of this table first, so a later run takes only minutes.',
    '',
    '| bug | seed | invariant, or test | what was seen |',
    '| --- | ---: | --- | --- |',
    ...rows,
    '',
  ]
  // A command that was ended by a closed pipe left an empty table.
  const fresh = `${TABLE}.new.md`
  await writeFile(fresh, lines.join('\n'))
  await promisify(execFile)(join(ROOT, 'node_modules/.bin/oxfmt'), [fresh])
  await rename(fresh, TABLE)
}
