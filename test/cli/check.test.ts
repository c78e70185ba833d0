import Database from 'better-sqlite3'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { startEmulator, type Emulator } from '../../src/emulator/index.ts'
import { folderWith } from '../config/folder.ts'
import { createSidecar } from '../../src/sidecar/sidecar.ts'
import { openSqliteStore } from '../../src/sidecar/store/sqlite/store.ts'
import { VirtualClock } from '../support/clock.ts'
import { listen } from '../support/listen.ts'
import { silentLog } from '../pictures/log.ts'
import { keepingLog } from '../support/ports.ts'
import { Rig } from '../support/rig.ts'
import { cli, start } from './process.ts'

let emulator: Emulator

beforeEach(async () => {
  emulator = await startEmulator()
})
afterEach(() => emulator.close())

interface Finding {
  subject: string
  state: string
  message: string
  fix?: string
}

async function findings(
  lines: readonly string[],
  baseUrl = emulator.baseUrl,
  token = emulator.token,
): Promise<{ code: number | null; found: Finding[]; of: (subject: string) => Finding | undefined }> {
  const folder = await folderWith({
    'sidecar.yaml': [`service: { base_url: "${baseUrl}", token: ${token} }`, ...lines].join('\n'),
  })
  const env = { SIDECAR_ADMIN__LISTEN: '127.0.0.1:0', SIDECAR_STORE__URL: `sqlite:${folder}/sidecar.db` }
  const overridden = Object.fromEntries(
    Object.entries(env).filter(
      ([key]) => !lines.some((line) => line.startsWith(key === 'SIDECAR_STORE__URL' ? 'store' : 'admin')),
    ),
  )
  const { code, out } = await cli(['check', '--json', '-c', `${folder}/sidecar.yaml`], overridden)
  const found = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Finding)
  return { code, found, of: (subject) => found.find((one) => one.subject === subject) }
}

describe('check', () => {
  test('reports of a module what run would report, and nothing about what is in it', async () => {
    const modules = await folderWith({
      'bad.mjs': "import './nowhere.mjs'",
      'good.mjs':
        "setInterval(() => undefined, 60_000); export default { kind: 'handlers', events: [], tools: [] }",
    })
    const of = async (name: string) => {
      const { code, found } = await findings([`handlers: [{ name: app, module: "${modules}/${name}.mjs" }]`])
      return { code, found: found.filter(({ subject }) => /^(modules|handler)/.test(subject)) }
    }
    expect(await of('good')).toMatchObject({ code: 0, found: [{ subject: 'handler app', state: 'ok' }] })
    const bad = await of('bad')
    expect(bad).toMatchObject({ code: 1, found: [{ subject: 'modules', state: 'fail' }] })
    expect(bad.found[0]?.message).toContain('bad.mjs cannot be imported')
  })

  test('connects to tools while modules are imported, so that it ends in time', async () => {
    const modules = await folderWith({
      'slow.mjs': `import { existsSync } from 'node:fs'
        for (const until = Date.now() + 5000; !existsSync(import.meta.dirname + '/connected');) {
          if (Date.now() > until) throw new Error('nothing connects')
          await new Promise((resolve) => setTimeout(resolve, 10))
        }
        export default { kind: 'handlers', events: [], tools: [] }`,
    })
    const server = createServer(() => writeFileSync(`${modules}/connected`, ''))
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    onTestFinished(() => void server.close())
    const { found } = await findings([
      `handlers: [{ name: app, module: "${modules}/slow.mjs" }]`,
      `tools: [{ name: look, url: "http://127.0.0.1:${port}/" }]`,
    ])
    expect(found.filter(({ subject }) => /^(modules|handler|tool)/.test(subject))).toMatchObject([
      { subject: 'handler app', state: 'ok' },
      { subject: 'tool look', state: 'ok' },
    ])
  })

  test('finds the package for a module that has none beside it, as run does', async () => {
    const text = (name: string) => `import { defineHandlers, tool } from '${name}'
      import { createClient } from 'agent-session-sidecar/client'
      const input = { type: 'object' } as const
      const look = tool({ name: 'look', description: '', input, run: () => typeof createClient })
      export default defineHandlers({ on: { 'turn.settled': () => undefined }, tools: [look] })`
    const modules = await folderWith({
      'handlers.ts': text('agent-session-sidecar'),
      'other.ts': text('agent-session'),
    })
    const of = async (file: string) => {
      const { code, found } = await findings([`handlers: [{ name: app, module: "${modules}/${file}" }]`])
      return { code, found: found.filter(({ subject }) => /^(modules|tool|handler)/.test(subject)) }
    }
    expect(await of('handlers.ts')).toMatchObject({
      code: 0,
      found: [{ subject: 'handler app' }, { subject: 'tool look', state: 'ok' }],
    })
    expect(await of('other.ts')).toMatchObject({ code: 1, found: [{ subject: 'modules', state: 'fail' }] })
  })

  test('lists each route and how it was found, and what does not work without a missing one', async () => {
    const { of } = await findings(['tools: [{ name: look, url: "http://127.0.0.1:9/" }]'])
    expect(of('route answer')).toMatchObject({
      state: 'ok',
      message: 'POST /v1/sessions/{session_id}/answers, found in the description',
    })
    await using bare = await listen((request, response) => {
      response.writeHead(request.url === '/v1/health' ? 200 : 404, { 'content-type': 'application/json' })
      const health = {
        object: 'health',
        usable: true,
        scopes: ['sessions:read', 'tools:respond', 'sessions:write'],
      }
      response.end(JSON.stringify(request.url === '/v1/health' ? health : {}))
    })
    const blind = await findings(['tools: [{ name: look, url: "http://127.0.0.1:9/" }]'], bare.url)
    expect(blind.code).toBe(1)
    expect(blind.of('discovery')?.state).toBe('warn')
    expect(blind.of('route answer')).toMatchObject({
      state: 'fail',
      fix: 'set service.routes.answer_path',
    })
    expect(blind.of('route sendMessage')).toMatchObject({ state: 'warn' })
    expect(blind.of('route readSession')).toMatchObject({ state: 'ok' })
    expect(blind.of('scopes')).toMatchObject({
      state: 'warn',
      message: 'artifacts:read is missing: turn.settled has no list of artifacts',
    })
  })

  test('names the scope that a token lacks for webhooks', async () => {
    const { token } = emulator.mintToken(['artifacts:read'])
    const { code, of } = await findings(
      ['webhooks: { enabled: true, listen: "127.0.0.1:0", public_url: "https://app.example.com/webhooks" }'],
      emulator.baseUrl,
      token,
    )
    expect(code).toBe(1)
    expect(of('webhooks')).toEqual({
      subject: 'webhooks',
      state: 'fail',
      message:
        'the list of subscriptions answered 403: this needs the scope sessions:read, which the token does not have',
      fix: 'create a token that also has this scope',
    })
  })

  test('distinguishes a port of another program from one of a sidecar', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const taken = await findings([`admin: { listen: "127.0.0.1:${port}" }`])
    server.close()
    expect(taken.code).toBe(1)
    expect(taken.of('admin.listen')).toMatchObject({
      state: 'fail',
      message: `127.0.0.1:${port} is in use by another program`,
    })
    const free = await findings(['admin: { listen: "[::1]:0" }'])
    expect(free.of('admin.listen')).toMatchObject({ state: 'ok', message: '[::1]:0 is free' })
    await using rig = await Rig.open({ channels: ['poll'] })
    const { host } = new URL(rig.program?.admin ?? '')
    const other = await findings([`admin: { listen: "${host}" }`])
    expect(other.code).toBe(0)
    expect(other.of('admin.listen')).toMatchObject({
      state: 'warn',
      message: `${host} is used by a running sidecar with other handlers, tools or settings than this file`,
    })
  })

  test('accepts a port of a sidecar that runs with this configuration', async () => {
    const folder = await folderWith({
      'sidecar.yaml': `service: { base_url: "${emulator.baseUrl}", token: ${emulator.token} }`,
    })
    const env = { SIDECAR_ADMIN__LISTEN: '127.0.0.1:0', SIDECAR_STORE__URL: `sqlite:${folder}/sidecar.db` }
    const sidecar = await createSidecar({ config: `${folder}/sidecar.yaml`, env, log: silentLog })
    await sidecar.start()
    const { port = 0 } = sidecar.address.admin ?? {}
    const host = `127.0.0.1:${port}`
    onTestFinished(() => sidecar.stop())
    const same = await findings([`admin: { listen: "${host}" }`])
    expect(same.of('admin.listen')).toMatchObject({
      state: 'ok',
      message: `${host} is used by a running sidecar`,
    })
  })

  // What is too large to be read through was not looked at, and called fine.
  test.for([
    {
      what: 'of another program',
      sql: 'PRAGMA application_id = 7',
      said: 'is a database of another program',
    },
    { what: 'of a newer version', sql: 'PRAGMA user_version = 99', said: 'was written by a newer version' },
    { what: 'with a definition altered', sql: 'DROP INDEX hints_due', said: 'is damaged: the definition of' },
  ])('refuses a large store $what, as run does', async ({ sql, said }) => {
    const folder = await folderWith({})
    const file = `${folder}/large.db`
    await openSqliteStore({ path: file, clock: new VirtualClock(), log: keepingLog() }).close()
    const db = new Database(file)
    db.exec(`${sql}; CREATE TABLE filling (text); INSERT INTO filling VALUES (zeroblob(70000000))`)
    db.close()
    const { code, of } = await findings([`store: { url: "sqlite:${file}" }`])
    expect(code).toBe(1)
    expect(of('store')).toMatchObject({ state: 'fail', message: expect.stringContaining(said) })
  })

  test('warns of another sidecar in the organization where no scope is set', async () => {
    await using other = await Rig.open({ channels: ['webhook'] })
    const { emulator: shared } = other
    const lines = (more: string) => [
      `service: { base_url: "${shared.baseUrl}", token: ${shared.token} }`,
      'tools: [{ name: look, url: "http://127.0.0.1:9/" }]',
      more,
    ]
    const of = async (more = '') => {
      const [service = '', ...rest] = lines(more)
      const folder = await folderWith({ 'sidecar.yaml': [service, ...rest].join('\n') })
      const env = { SIDECAR_ADMIN__LISTEN: '127.0.0.1:0', SIDECAR_STORE__URL: `sqlite:${folder}/sidecar.db` }
      const { out } = await cli(['check', '--json', '-c', `${folder}/sidecar.yaml`], env)
      const found = out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Finding)
      return found.find(({ subject }) => subject === 'scope')
    }
    expect(await of()).toEqual({
      subject: 'scope',
      state: 'warn',
      message: `this organization has another webhook subscription (${other.config.webhooks?.public_url}): if it belongs to another sidecar, each runs the other's tools`,
      fix: 'set scope, such as scope: { metadata: { app: billing } }, in both configurations',
    })
    expect(await of('scope: { metadata: { app: billing } }')).toBeUndefined()
    const ours = `webhooks: { enabled: true, public_url: "${other.config.webhooks?.public_url}" }`
    expect(await of(ours)).toBeUndefined()
  })

  test('names the key of each warning about the configuration', async () => {
    const { found } = await findings([
      'handlers: [{ name: app, url: "http://127.0.0.1:1", events: [turn.setled] }]',
      'admin: { listen: "127.0.0.1:0", token: short }',
    ])
    const warned = found.filter(({ subject, state }) => subject === 'configuration' && state === 'warn')
    expect(warned.map(({ fix }) => fix?.split(';')[0])).toEqual(
      expect.arrayContaining(['change handlers[0].events[0]', 'change admin.token']),
    )
  })

  test('reads the whole store: sound, with dead letters, damaged', async () => {
    await using rig = await Rig.open({ channels: ['poll'] })
    await rig.client.start('say Hello')
    await rig.event('turn.settled')
    await rig.stop()
    const file = `${rig.folder}/sidecar.db`
    const store = [`store: { url: "sqlite:${file}" }`]
    expect((await findings(store)).of('store')?.message).toMatch(/is writable and sound, \d+ facts$/)
    const db = new Database(file)
    db.exec("UPDATE facts SET body = 'other' WHERE pos = 1")
    db.close()
    const damaged = await findings(store)
    expect(damaged.code).toBe(1)
    expect(damaged.of('store')).toMatchObject({ state: 'fail', fix: 'restore a backup' })
  })

  test('warns before the token expires, and fails after', async () => {
    const day = 86_400_000
    const expiring = async (at: number) => {
      const text = new Date(at).toISOString()
      const folder = await folderWith({
        'sidecar.yaml': `service: { base_url: "${emulator.baseUrl}", token: x, token_expires_at: "${text}" }`,
      })
      const { out } = await cli(['check', '-c', `${folder}/sidecar.yaml`])
      return out.split('\n').find((line) => line.includes(' token expiry '))
    }
    expect(await expiring(Date.now() + 30 * day)).toMatch(/^✓ token expiry +it expires in 30 d/)
    expect(await expiring(Date.now() + 3 * day)).toMatch(/^! token expiry .*→ create a new one/)
    expect(await expiring(Date.now() - day)).toMatch(/^✗ token expiry +it expired/)
  })

  test('prints known findings at once, while it waits for the service', async () => {
    await using silent = await listen(() => undefined)
    const folder = await folderWith({
      // The name by which it is looked for when none is given.
      'sidecar.yaml': `service: { base_url: "${silent.url}", token: x }`,
    })
    const running = start(['check'], { cwd: folder, env: { SIDECAR_ADMIN__LISTEN: '127.0.0.1:0' } })
    await expect
      .poll(() => running.out)
      .toMatch(/^! configuration +sidecar.yaml: 0 handlers, 0 tools.*\n.* token expiry /)
    expect(running.out).not.toContain('service  ')
    expect((await running.ended).out).toContain('service  ')
  })

  test('runs all checks at once, even if no peer answers, and ends with the fixes', async () => {
    // Takes connections and says nothing.
    await using silent = await listen(() => undefined)
    const folder = await folderWith({
      'sidecar.yaml': [
        `service: { base_url: "${silent.url}", token: x }`,
        'handlers: [{ name: app, url: "http://127.0.0.1:9/" }, { name: far, url: "http://192.0.2.1/" }]',
        'webhooks: { enabled: true, listen: "127.0.0.1:0", public_url: "https://127.0.0.1:9/webhooks" }',
      ].join('\n'),
    })
    const started = performance.now()
    const { code, out } = await cli(['check', '-c', `${folder}/sidecar.yaml`], {
      SIDECAR_ADMIN__LISTEN: '127.0.0.1:0',
    })
    // With the start of the program, beside other tests; one after the other the looks would take twelve.
    expect(performance.now() - started).toBeLessThan(9000)
    expect(code).toBe(1)
    expect(out).toMatch(/^✗ service +http:\S+ is unreachable: no answer within 3 s/m)
    const end = out.split('\n\n')[1] ?? ''
    expect(end).toMatch(/^3 problems\. How to fix:\n {2}1\. service: correct service\.base_url/)
    expect(end).toContain('handler app: start the app, or correct handlers[0].url')
  })
})
