import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify, stripVTControlCharacters } from 'node:util'
import type { NamedTest } from './mutant.ts'

/** Time limit of a test, milliseconds; a longer one proves nothing. */
const LIMIT = 300_000

/** `passed` and `failed`: it ran. `broken`: it did not. */
export interface Outcome {
  kind: 'passed' | 'failed' | 'broken'
  /** The first line of its failure, or why it did not run. */
  message: string
}

interface Report {
  numPassedTests: number
  testResults: { message: string; assertionResults: { status: string; failureMessages: string[] }[] }[]
}

/** Runs a test in a copy of the project. */
export function runTest(folder: string, test: NamedTest): Promise<Outcome> {
  return test.isTypes === true ? checkTypes(folder, test.file) : runVitest(folder, test)
}

async function runVitest(folder: string, { file, only }: NamedTest): Promise<Outcome> {
  const report = join(folder, 'report.json')
  await writeFile(report, '')
  const { out } = await execute(folder, 'node_modules/vitest/vitest.mjs', [
    'run',
    '--config',
    'test/vitest.config.ts',
    `test/${file}`,
    '--reporter=json',
    '--testTimeout=30000',
    `--outputFile=${report}`,
    ...(only === undefined ? [] : [`--testNamePattern=${only}`]),
  ])
  const text = await readFile(report, 'utf8')
  if (text === '') return { kind: 'broken', message: out.slice(0, 200) }
  const { numPassedTests, testResults } = JSON.parse(text) as Report
  const failed = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .find(({ status }) => status === 'failed')
  if (failed !== undefined)
    return { kind: 'failed', message: firstLine(failed.failureMessages.join('\n'), folder) }
  if (numPassedTests > 0) return { kind: 'passed', message: '' }
  const why = testResults.find(({ message }) => message !== '')?.message
  return { kind: 'broken', message: why ?? `no test of ${file} is called ${only ?? 'anything'}` }
}

/** With the settings of the project, and of its files only this one and what it imports. */
async function checkTypes(folder: string, file: string): Promise<Outcome> {
  const settings = join(folder, 'tsconfig.named-test.json')
  await writeFile(settings, JSON.stringify({ extends: './tsconfig.json', include: [`test/${file}`] }))
  const { code, out } = await execute(folder, 'node_modules/typescript/bin/tsc', ['--noEmit', '-p', settings])
  if (code === 0) return { kind: 'passed', message: '' }
  const error = out.split('\n').find((line) => line.startsWith(`test/${file}`))
  return error === undefined
    ? { kind: 'broken', message: firstLine(out, folder) }
    : { kind: 'failed', message: firstLine(error, folder) }
}

async function execute(
  folder: string,
  script: string,
  args: readonly string[],
): Promise<{ code: number; out: string }> {
  try {
    const env = { ...process.env, RELEASE: '1' }
    const options = { cwd: folder, timeout: LIMIT, maxBuffer: Infinity, env }
    const { stdout } = await promisify(execFile)(process.execPath, [script, ...args], options)
    return { code: 0, out: stdout }
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    return { code: 1, out: `${stdout}\n${stderr}`.trim() }
  }
}

/** Without what differs from run to run: colours, and where the copy is. */
function firstLine(text: string, folder: string): string {
  const [line = ''] = stripVTControlCharacters(text).trim().split('\n')
  return line.replaceAll(`${folder}/`, '')
}
