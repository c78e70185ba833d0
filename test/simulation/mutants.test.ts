import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { FULL, RELEASE } from '../support/full.ts'
import { mutant, type Mutant } from './mutants/mutant.ts'
import { MUTANTS } from './mutants/mutants.ts'
import { isCrash, lostReplays, planted, readTable } from './mutants/table.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const OXLINT = join(ROOT, 'node_modules/.bin/oxlint')
const VITEST = join(ROOT, 'node_modules/vitest/vitest.mjs')
const RULES = {
  plugins: [],
  categories: { correctness: 'off' },
  rules: { 'no-undef': 'error', 'no-const-assign': 'error' },
  env: { node: true, builtin: true },
}

/** @returns names that a file with a planted bug uses and nothing declares, and whatever else keeps it from running. */
async function notDeclared(mutants: readonly Mutant[]): Promise<string[]> {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'sidecar-names-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const rules = join(folder, 'rules.json')
  await writeFile(rules, JSON.stringify(RULES))
  for (const [index, one] of mutants.entries()) {
    for (const [file, text] of await planted(one)) {
      const path = join(folder, String(index), file)
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, text)
    }
  }
  const out = await lint(folder, rules)
  const { diagnostics } = JSON.parse(out) as { diagnostics: { filename: string; message: string }[] }
  return diagnostics.map(
    ({ filename, message }) => `${mutants[Number(filename.split('/')[0])]?.name}: ${message}`,
  )
}

async function lint(folder: string, rules: string): Promise<string> {
  const words = ['--config', rules, '--format', 'json', '.']
  try {
    return (await promisify(execFile)(OXLINT, words, { cwd: folder, maxBuffer: Infinity })).stdout
  } catch (error) {
    // It exits 1 when it found something.
    return (error as { stdout: string }).stdout
  }
}

/** The names of the tests of each file, as vitest compares them with a pattern. */
async function titlesOf(files: readonly string[]): Promise<Map<string, string[]>> {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'sidecar-titles-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const list = join(folder, 'list.json')
  const words = ['list', '--config', 'test/vitest.config.ts', '--project', 'all', '--no-static-parse']
  const paths = files.map((file) => `test/${file}`)
  await promisify(execFile)(process.execPath, [VITEST, ...words, `--json=${list}`, ...paths], {
    cwd: ROOT,
    env: { ...process.env, RELEASE: '1' },
  })
  const found = JSON.parse(await readFile(list, 'utf8')) as { name: string; file: string }[]
  const titles = new Map<string, string[]>()
  for (const { name, file } of found) {
    const path = relative(join(ROOT, 'test'), file)
    titles.set(path, [...(titles.get(path) ?? []), name.replaceAll(' > ', ' ')])
  }
  return titles
}

/** Seeing them takes long: `npm run simulate -- --mutants`. */
describe('the planted bugs', () => {
  it.each(MUTANTS.map((each) => ({ each, name: each.name })))(
    'can still be planted: $name',
    async ({ each }) => {
      const texts = await planted(each)
      expect(texts.size).toBeGreaterThan(0)
    },
  )

  it('stand in the table, each once, and nothing else does', async () => {
    const names = MUTANTS.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect([...(await readTable()).keys()]).toEqual(names)
  })

  // A title was written in plainer words, and nine bugs were no longer tried: no test had the name that they asked for.
  it.runIf(FULL)('name tests that exist, if tests detect them', { timeout: 120_000 }, async () => {
    const named = MUTANTS.flatMap(({ name, test }) =>
      test === undefined || test.isTypes === true ? [] : [{ name, ...test }],
    )
    const titles = await titlesOf([...new Set(named.map(({ file }) => file))])
    const missing = named.filter(
      ({ file, only = '' }) => !titles.get(file)?.some((title) => new RegExp(only).test(title)),
    )
    expect(missing.map(({ name, file, only }) => `${name}: ${file} ${only}`)).toEqual([])
  })

  // Four threw a ReferenceError in place of what they were to do, and counted as seen.
  it('use no name that is not declared', async () => {
    expect(await notDeclared(MUTANTS)).toEqual([])
    const file = 'sidecar/store/sqlite/committer.ts'
    const wrong = [
      mutant('a name', file, '      this.#schedule()\n    })', '      resolve()\n    })'),
      mutant('a field', file, 'this.#again?.cancel()', 'this.#gone?.cancel()'),
    ]
    expect((await notDeclared(wrong)).sort()).toEqual([
      "a field: Private field '#gone' must be declared in an enclosing class",
      "a name: 'resolve' is not defined.",
    ])
  })

  // Seven were no longer shown, as their stories ran by other seeds after the code had changed.
  it.runIf(RELEASE)('are still shown by their replays', { timeout: 600_000 }, async () => {
    expect(await lostReplays()).toEqual([])
  })

  it('are not detected by a TypeError or another error of the language', async () => {
    expect(isCrash({ invariant: 'unhandled', message: 'TypeError: x is not a function\n    at y' })).toBe(
      true,
    )
    expect(isCrash({ invariant: 'unhandled', message: 'StoreError: the disk is full' })).toBe(false)
    expect(isCrash({ invariant: 'I1', message: 'TypeError' })).toBe(false)
    expect([...(await readTable())].filter(([, sight]) => isCrash(sight))).toEqual([])
  })
})
