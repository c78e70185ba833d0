import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createVitest, type Vitest } from 'vitest/node'
import { readCommand } from '../support/command.ts'
import { FILES } from './files.ts'
import { mutantsOf, type Mutant } from './mutants.ts'

/** Changes the pure parts one place at a time, in a copy, and says which changes no test sees. */

const ROOT = resolve(import.meta.dirname, '../..')
/** Of the changes of each file so many are to be seen, percent. */
const LEAST = 90

const USAGE = `npm run mutate -- [--file NAME]

  --file NAME  only files with NAME in their path, all by default. The files:
               ${Object.keys(FILES).join(', ')}
`

const files = readCommand(USAGE, (args) => {
  const { file: part } = parseArgs({ args: [...args], options: { file: { type: 'string' } } }).values
  const chosen = Object.entries(FILES).filter(([file]) => part === undefined || file.includes(part))
  if (chosen.length === 0) throw new TypeError(`there is no file with "${part}" in its path`)
  return chosen
})

const folder = mkdtempSync(join(tmpdir(), 'sidecar-mutation-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
for (const name of ['src', 'test', 'config', 'package.json', 'tsconfig.json'])
  cpSync(join(ROOT, name), join(folder, name), { recursive: true })
symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))

const short: string[] = []
process.stdout.write(`${'file'.padEnd(28)} changes   seen\n`)
for (const [file, tests] of files) {
  const { tried, unseen } = await tryFile(file, tests)
  const percent = 100 - (100 * unseen.length) / tried
  if (percent < LEAST) short.push(file)
  process.stdout.write(
    `${file.padEnd(28)} ${String(tried).padStart(7)} ${String(tried - unseen.length).padStart(6)}  ${Math.floor(percent)} %\n`,
  )
  for (const { line, from, to } of unseen)
    process.stdout.write(`  ${file}:${line}: ${from} → ${to || 'nothing'}\n`)
}
if (short.length > 0) process.stdout.write(`less than ${LEAST} % seen: ${short.join(', ')}\n`)
process.exit(short.length > 0 ? 1 : 0)

/** @returns how many changes were tried, and those that no test saw. */
async function tryFile(file: string, tests: readonly string[]): Promise<{ tried: number; unseen: Mutant[] }> {
  const path = join(folder, 'src', file)
  const source = readFileSync(path, 'utf8')
  const vitest = await open(tests)
  const fault = await failure(vitest, tests)
  if (fault !== null) throw new Error(`the tests of ${file} fail without any change: ${fault}`)
  const mutants = mutantsOf(source)
  const unseen: Mutant[] = []
  for (const mutant of mutants) {
    writeFileSync(path, mutant.text)
    vitest.invalidateFile(path)
    if ((await failure(vitest, tests)) === null) unseen.push(mutant)
  }
  writeFileSync(path, source)
  await vitest.close()
  return { tried: mutants.length, unseen }
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
    setupFiles: [fileURLToPath(import.meta.resolve('./watchdog.ts'))],
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
