import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createVitest, type Vitest } from 'vitest/node'
import { FILES } from './files.ts'
import { mutantsOf, type Mutant } from './mutants.ts'

/** Changes the pure parts one place at a time, in a copy, and says which changes no test sees. */

const ROOT = resolve(import.meta.dirname, '../..')
/** A change that makes the tests hang is seen, too, milliseconds. */
const LIMIT = 30_000

const USAGE = `npm run mutate -- [--file NAME]

  --file NAME  only files with NAME in their path; all of these by default:
               ${Object.keys(FILES).join(', ')}
`

const { values } = parseArgs({ options: { file: { type: 'string' }, help: { type: 'boolean' } } })
const files = Object.entries(FILES).filter(
  ([file]) => values.file === undefined || file.includes(values.file),
)
if (values.help === true || files.length === 0) {
  process.stdout.write(USAGE)
  process.exit(values.help === true ? 0 : 2)
}

const folder = mkdtempSync(join(tmpdir(), 'sidecar-mutation-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
for (const name of ['src', 'test', 'config', 'package.json', 'tsconfig.json'])
  cpSync(join(ROOT, name), join(folder, name), { recursive: true })
symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))

const all = { tried: 0, seen: 0 }
process.stdout.write(`${'file'.padEnd(28)} changes   seen\n`)
for (const [file, tests] of files) {
  const unseen = await tryFile(file, tests)
  for (const { line, from, to } of unseen)
    process.stdout.write(`  ${file}:${line}: ${from} → ${to || 'nothing'}\n`)
}
process.stdout.write(row('all', all.tried, all.seen))
process.exit(0)

/** @returns the changes that no test saw. */
async function tryFile(file: string, tests: readonly string[]): Promise<Mutant[]> {
  const path = join(folder, 'src', file)
  const source = readFileSync(path, 'utf8')
  let vitest = await open(tests)
  const fault = await failure(vitest, tests)
  if (fault !== null) throw new Error(`the tests of ${file} fail without any change: ${fault}`)
  const mutants = mutantsOf(source)
  const unseen: Mutant[] = []
  for (const mutant of mutants) {
    writeFileSync(path, mutant.text)
    vitest.invalidateFile(path)
    const over = new AbortController()
    const outcome = await Promise.race([
      failure(vitest, tests),
      pause(LIMIT, 'hangs' as const, { signal: over.signal, ref: false }).catch(() => 'hangs' as const),
    ])
    over.abort()
    if (outcome === null) unseen.push(mutant)
    if (outcome === 'hangs') {
      await Promise.race([vitest.close(), pause(5000)])
      vitest = await open(tests)
    }
  }
  writeFileSync(path, source)
  await vitest.close()
  all.tried += mutants.length
  all.seen += mutants.length - unseen.length
  process.stdout.write(row(file, mutants.length, mutants.length - unseen.length))
  return unseen
}

async function open(tests: readonly string[]): Promise<Vitest> {
  const vitest = await createVitest('test', {
    root: folder,
    config: false,
    include: ['test/**/*.test.ts'],
    watch: false,
    bail: 1,
    reporters: [{}],
    testTimeout: 20_000,
  })
  await vitest.standalone()
  if ((await specificationsOf(vitest, tests)).length === 0)
    throw new Error(`there are no tests ${tests.join(', ')}`)
  return vitest
}

function specificationsOf(vitest: Vitest, tests: readonly string[]) {
  return vitest.globTestSpecifications(tests.map((test) => join(folder, 'test', test)))
}

/** The first test that fails; null when none does. */
async function failure(vitest: Vitest, tests: readonly string[]): Promise<string | null> {
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(
    await specificationsOf(vitest, tests),
  )
  for (const module of testModules) {
    if (module.ok()) continue
    const [test] = module.children.allTests('failed')
    return test?.fullName ?? module.errors()[0]?.message ?? module.moduleId
  }
  return unhandledErrors.length > 0 ? String(unhandledErrors[0]) : null
}

function row(name: string, tried: number, seen: number): string {
  return `${name.padEnd(28)} ${String(tried).padStart(7)} ${String(seen).padStart(6)}  ${((100 * seen) / Math.max(1, tried)).toFixed(0)} %\n`
}
