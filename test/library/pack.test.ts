import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const MODULES = join(ROOT, 'node_modules')
const NAME = 'agent-session-sidecar'
const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'sidecar-pack-'))
const app = join(folder, 'app')
const installed = join(app, 'node_modules', NAME)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A program of somebody who uses the package, checked by the compiler and then run. */
const PROGRAM = `
import { createSidecar, defineHandlers, DeadLetter, tool, verifyCallback, type ConfigInput } from '${NAME}'
import { createClient, isEvent, ServiceError, type Client, type Session } from '${NAME}/client'
import { startEmulator } from '${NAME}/emulator'

const emulator = await startEmulator({})
const config: ConfigInput = {
  service: { base_url: emulator.baseUrl, token: 'svc_pat_dev' },
  store: { url: 'sqlite:' + process.argv[2] + '/sidecar.db' },
  admin: { listen: '127.0.0.1:0' },
  log: { level: 'silent' },
}
const lookup = tool({
  name: 'lookup',
  description: 'Finds',
  input: { type: 'object' },
  run: (_args, { callId, attempt }) => callId + String(attempt),
})
const handlers = defineHandlers({ on: { 'turn.settled': (event) => void event.data.turn.status }, tools: [lookup] })
const sidecar = await createSidecar({ config })
sidecar.tool(lookup)
sidecar.on('turn.settled', (event) => {
  const status: string = event.data.turn.status
  if (status === 'never') throw new DeadLetter()
})
await sidecar.start()
const names = sidecar.tools().map(({ name }) => name)
await sidecar.stop()
const client: Client = createClient({ baseUrl: emulator.baseUrl, token: 'svc_pat_dev' })
const session: Session = await client.sessions.create({ title: 'packed' })
const stream = await client.sessions.events(session.id, { after: 0 })
await client.sessions.send(session.id, 'say Hello')
let said = ''
for await (const event of stream) {
  if (isEvent(event, 'agent.message')) said = event.payload.text
  if (event.type === 'turn.ended') break
}
const fault: unknown = await client.sessions.get('none').catch((error: unknown) => error)
const code = fault instanceof ServiceError ? fault.code : ''
await client.close()
await emulator.close()
let rejected = ''
try {
  verifyCallback({ headers: {}, body: '{}', secrets: [] })
} catch (error) {
  rejected = String(error)
}
process.stdout.write(JSON.stringify({ names, events: handlers.events, rejected, title: session.title, said, code }))
`

const COMPILER = {
  compilerOptions: {
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    outDir: 'out',
    rootDir: '.',
  },
  files: ['program.ts'],
}

/** The package as it would be published, in a project that has its dependencies; nothing of our tree is touched. */
beforeAll(async () => {
  const source = join(folder, 'source')
  mkdirSync(source)
  for (const name of [
    'package.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'src',
    'config',
    'LICENSE',
    'README.md',
    'CHANGELOG.md',
  ]) {
    if (existsSync(join(ROOT, name))) cpSync(join(ROOT, name), join(source, name), { recursive: true })
  }
  symlinkSync(MODULES, join(source, 'node_modules'))
  await run('npm', ['run', '--silent', 'package', '--', '--silent', '--pack-destination', folder], {
    cwd: source,
  })

  mkdirSync(installed, { recursive: true })
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz'))
  await run('tar', ['xzf', join(folder, String(tarball)), '-C', installed, '--strip-components=1'])
  for (const name of readdirSync(MODULES)) symlinkSync(join(MODULES, name), join(app, 'node_modules', name))
  writeFileSync(join(app, 'package.json'), '{"type":"module","private":true}')
  writeFileSync(join(app, 'tsconfig.json'), JSON.stringify(COMPILER))
  writeFileSync(join(app, 'program.ts'), PROGRAM)
}, 60_000)

const filesBelow = (path: string) => readdirSync(path, { recursive: true, encoding: 'utf8' })

describe('the published package', () => {
  it('has for each module its code and its types, and no source', () => {
    const files = filesBelow(join(installed, 'dist'))
    const modules = filesBelow(join(ROOT, 'src')).filter((name) => name.endsWith('.ts'))
    for (const name of modules) {
      expect(files).toContain(name.replace(/\.ts$/, '.js'))
      expect(files).toContain(name.replace(/\.ts$/, '.d.ts'))
    }
    expect(files.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))).toEqual([])
    expect(readdirSync(installed)).not.toContain('src')
    expect(readdirSync(installed)).not.toContain('test')
  })

  it('has the migrations of the store and the examples', () => {
    const migrations = readdirSync(join(ROOT, 'src/store/sqlite/migrations'))
    expect(readdirSync(join(installed, 'dist/store/sqlite/migrations'))).toEqual(migrations)
    expect(filesBelow(join(installed, 'config'))).toEqual(filesBelow(join(ROOT, 'config')))
  })

  it('type-checks a program that uses it, which then runs', async () => {
    await run(process.execPath, [join(MODULES, '.bin/tsc'), '-p', app]).catch(
      async (error: { stdout?: string }) => {
        throw new Error(`the compiler says:\n${error.stdout}`)
      },
    )
    const { stdout } = await run(process.execPath, ['out/program.js', folder], { cwd: app })
    expect(JSON.parse(stdout)).toEqual({
      names: ['lookup'],
      events: ['turn.settled'],
      rejected: 'CallbackRejected: a webhook header is missing',
      title: 'packed',
      said: 'Hello',
      code: 'not_found',
    })
  }, 60_000)

  it('has a binary that runs', async () => {
    const { stdout } = await run(process.execPath, [join(installed, 'dist/main.js'), '--help'])
    expect(stdout).toContain('session-sidecar')
  })
})
