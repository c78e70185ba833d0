import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { MUTANTS, type Mutant } from './mutants.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
/** A mutant that hangs is caught, too, milliseconds. */
const LIMIT = 600_000

/**
 * Plants each bug in a copy of the source, plays at most `seeds` seeds there, and prints bug, seed and invariant.
 * @returns false when a bug was not seen.
 * @throws {Error} when a bug cannot be planted any more.
 */
export async function tryMutants(seeds: number, part: string | undefined): Promise<boolean> {
  const waiting = MUTANTS.filter(({ name }) => part === undefined || name.includes(part))
  const all = waiting.length
  let missed = 0
  const work = async (): Promise<void> => {
    await using stack = new AsyncDisposableStack()
    const folder = await mkdtemp(join(tmpdir(), 'sidecar-mutants-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    for (const name of ['src', 'test/simulation', 'package.json'])
      await cp(join(ROOT, name), join(folder, name), { recursive: true })
    await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      const { seen, text } = await tryOne(folder, mutant, seeds)
      if (!seen) missed++
      console.log(`${mutant.name.padEnd(64)} ${text}`)
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  console.log(`${all - missed} of ${all} planted bugs were seen within ${seeds} seeds`)
  return missed === 0
}

interface Sight {
  seen: boolean
  /** The seed and the invariant. */
  text: string
}

async function tryOne(folder: string, { edits, name }: Mutant, seeds: number): Promise<Sight> {
  for (const [file, find, put] of edits) {
    const text = await readFile(join(ROOT, 'src', file), 'utf8')
    if (text.split(find).length !== 2) throw new Error(`"${name}" cannot be planted: ${file} has changed`)
    await writeFile(
      join(folder, 'src', file),
      text.replace(find, () => put),
    )
  }
  try {
    const script = join(folder, 'test/simulation/simulate.ts')
    await promisify(execFile)(process.execPath, [script, '--brief', '--seeds', String(seeds)], {
      timeout: LIMIT,
    })
    return { seen: false, text: 'NOT SEEN' }
  } catch (error) {
    return readOutcome(error)
  } finally {
    for (const [file] of edits) await cp(join(ROOT, 'src', file), join(folder, 'src', file))
  }
}

/** A copy that does not even start says nothing of the simulation. */
function readOutcome(error: unknown): Sight {
  const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
  const line = stdout.trim().split('\n').at(-1) ?? ''
  if (!line.startsWith('{')) return { seen: false, text: `does not run: ${(line || stderr).slice(0, 200)}` }
  const { seed, invariant, message } = JSON.parse(line) as {
    seed: number
    invariant: string
    message: string
  }
  const said = message.replace(/^after ten minutes of calm: /, '').slice(0, 90)
  return { seen: true, text: `seed ${String(seed).padEnd(5)} ${invariant.padEnd(9)} ${said}` }
}
