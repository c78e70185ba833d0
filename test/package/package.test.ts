import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { blocks, DOCUMENTS, group, ROOT, section } from '../readme/document.ts'
import { pack, type Packed } from './pack.ts'
import { linksOf } from '../readme/links.ts'
import { MISTAKES, YOUNGER } from './mistakes.ts'
import { COMPILER, PROGRAM } from './program.ts'
import { saveProject, snippets } from './snippets.ts'

/** Bytes; config/README.md states them in these units. */
const KIB = 1024
const PACKED_MOST = 1408 * KIB
const UNPACKED_MOST = 5248 * KIB

const run = promisify(execFile)
let packed: Packed
let paths: string[]

beforeAll(async () => {
  packed = await pack()
  paths = packed.files.map((file) => file.path)
})
afterAll(() => packed.remove())

test('publint finds nothing', async () => {
  const { messages, pkg } = await publint({ pkgDir: packed.installed, pack: false, strict: true })
  expect(messages.map((message) => formatMessage(message, pkg))).toEqual([])
})

test('types resolve from ES modules and bundlers, at every entry point', async () => {
  const result = await checkPackage(createPackageFromTarballData(readFileSync(packed.tarball)))
  if (result.types === false) throw new Error('the package has no types')
  // What these say of the ways of Node 10 and of `require` from CommonJS is so by choice: this is ESM for Node 24.
  const problems = result.problems.filter(
    (problem) => !('resolutionKind' in problem && ['node10', 'node16-cjs'].includes(problem.resolutionKind)),
  )
  expect(problems).toEqual([])
  expect(Object.keys(result.entrypoints)).toEqual(['.', './client', './emulator', './package.json'])
})

test('no TypeScript is in the package but the examples and declarations, those that its entry points show', () => {
  const declarations = paths.filter((file) => file.endsWith('.d.ts'))
  expect(declarations).toEqual(
    expect.arrayContaining(['index', 'client/index', 'emulator/index'].map((face) => `dist/${face}.d.ts`)),
  )
  expect(declarations.filter((file) => file.startsWith('dist/cli/'))).toEqual([])
  const sources = paths.filter((file) => /\.[cm]?ts$/.test(file) && !file.endsWith('.d.ts'))
  expect(sources.filter((file) => !file.startsWith('config/examples/'))).toEqual([])
})

test('what the program reads from files is in the package, and nothing that only we need', () => {
  expect(paths).toEqual(
    expect.arrayContaining([
      'LICENSE',
      'CHANGELOG.md',
      ...DOCUMENTS,
      'config/sidecar.yaml',
      'config/schema.json',
      'config/scenarios/tour.yaml',
      'config/scenarios/schema.json',
      'dist/main.js',
      'dist/sidecar/store/sqlite/migrations/0001.sql',
    ]),
  )
  const beside = globSync('src/**/*.*', { cwd: ROOT }).filter(
    (file) => !/\.(ts|md)$|\/(tsconfig|catalogue)\.json$/.test(file),
  )
  expect(beside.length).toBeGreaterThan(2)
  expect(beside.filter((file) => !paths.includes(file.replace(/^src/, 'dist')))).toEqual([])
  expect(
    paths.filter((file) => /(^|\/)(test|src|data)\//.test(file) && !file.endsWith('/README.md')),
  ).toEqual([])
})

test.each([...DOCUMENTS, 'src/README.md', 'CHANGELOG.md'])(
  '%s links to what is in the package',
  (document) => {
    const text = readFileSync(path.join(packed.installed, document), 'utf8')
    const files = linksOf(text).flatMap((link) =>
      /^([a-z]+:|#)/.test(link) ? [] : (link.split('#')[0] ?? []),
    )
    const missing = files.filter(
      (file) => !existsSync(path.join(packed.installed, path.dirname(document), file)),
    )
    expect(missing).toEqual([])
  },
)

test('the code of others that is in the bundle brings its licence', () => {
  const licences = readFileSync(path.join(packed.installed, 'dist/LICENSES.txt'), 'utf8')
  for (const [name, license] of [
    ['fastify', 'MIT'],
    ['undici', 'MIT'],
    ['yaml', 'ISC'],
    ['prom-client', 'Apache-2.0'],
  ])
    expect(licences).toMatch(new RegExp(`^${name} [0-9.]+: ${license}\n\n\\s*\\S`, 'm'))
})

test('its size is what config/README.md states, within the bound', () => {
  expect(packed.size).toBeLessThan(PACKED_MOST)
  expect(packed.unpackedSize).toBeLessThan(UNPACKED_MOST)
  const [, size = '', unpacked = ''] =
    /under (\d+) KiB packed and (\d+) KiB unpacked/.exec(section('config/README.md', 'Package')) ?? []
  expect([Number(size) * KIB, Number(unpacked) * KIB]).toEqual([PACKED_MOST, UNPACKED_MOST])
})

test('the documents make the package under the name that it has, and install what their programs import', () => {
  const [commands] = group('package')
  expect(commands?.text).toContain(`npm run package\npackage=$PWD/${path.basename(packed.tarball)}\n`)
  const installed = /^npm install "\$package" (.*)$/m.exec(commands?.text ?? '')?.[1]?.split(' ') ?? []
  const programs = blocks().filter(({ language }) => language === 'ts')
  const imported = programs.flatMap(({ text }) =>
    [...text.matchAll(/ from '([^'./][^']*)'/g)].map(([, name = '']) => name),
  )
  const packages = new Set(imported.filter((name) => !/^(node:|agent-session-sidecar($|\/))/.test(name)))
  expect(installed.filter((name) => !name.startsWith('@types/'))).toEqual([...packages])
  expect(installed).toContain('@types/node')
})

test('a program that uses every entry point of it type-checks, and then runs', async () => {
  const { folder } = packed
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module","private":true}')
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(COMPILER))
  writeFileSync(path.join(folder, 'program.ts'), PROGRAM)
  expect(await compile(folder)).toBe('')
  const { stdout } = await run(process.execPath, ['out/program.js', folder], { cwd: folder })
  expect(JSON.parse(stdout)).toEqual({
    names: ['lookup'],
    events: ['turn.settled'],
    rejected: 'CallbackRejected: a webhook header is missing',
    title: 'packed',
    said: 'Hello',
    code: 'not_found',
  })
})

/** What the compiler says of the project in a folder, a line each. */
async function compile(folder: string): Promise<string> {
  const compiler = path.join(ROOT, 'node_modules/.bin/tsc')
  const done = await run(process.execPath, [compiler], { cwd: folder }).catch(
    (error: { stdout?: string }) => error,
  )
  return done.stdout ?? 'the compiler did not run'
}

test('every TypeScript of the documents and examples compiles with --strict', async () => {
  const found = snippets()
  expect(found.map(({ origin }) => origin.replace(/:.*/, ''))).toEqual(
    expect.arrayContaining(['src/sidecar/README.md', 'config/examples/typescript/app.ts']),
  )
  expect(found.length).toBeGreaterThan(7)
  const folder = path.join(packed.folder, 'snippets')
  saveProject(folder, found)
  expect(await compile(folder)).toBe('')
})

test('a mistake is a type error at its place, and the message lists the known names', async () => {
  const folder = path.join(packed.folder, 'mistakes')
  saveProject(
    folder,
    MISTAKES.map(({ text }, index) => ({ origin: `mistake ${index}`, text })),
    { skipLibCheck: true },
  )
  const messages = (await compile(folder)).split('\n')
  for (const [index, { line, says }] of MISTAKES.entries()) {
    const own = messages.filter((one) => one.startsWith(`mistake-${index}.ts(`))
    expect(own).toEqual([expect.stringMatching(new RegExp(`\\(${line},\\d+\\): error `))])
    for (const words of says) expect(own[0]).toContain(words)
  }
})

test('a type of event that is younger than the package can be declared', async () => {
  const folder = path.join(packed.folder, 'younger')
  saveProject(folder, [{ origin: 'younger', text: YOUNGER }], { skipLibCheck: true })
  expect(await compile(folder)).toBe('')
})

test('has a binary that runs', async () => {
  const { stdout } = await run(process.execPath, [path.join(packed.installed, 'dist/main.js'), '--help'])
  expect(stdout).toContain('session-sidecar')
})

test('its binary delivers every fact of the tour and answers every call', async () => {
  const main = path.join(packed.installed, 'dist/main.js')
  const { stdout } = await run(process.execPath, [main, 'dev', '--once'], { cwd: packed.folder })
  expect(stdout).toContain('everything is idle')
})

test('an install has the dependencies, and not the Node of this repository', () => {
  const read = (folder: string) =>
    JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as Record<string, unknown>
  expect(read(ROOT)).toHaveProperty('optionalDependencies')
  expect(Object.keys(read(packed.installed)).filter((key) => /dependencies$/i.test(key))).toEqual([
    'dependencies',
    'peerDependencies',
  ])
})
