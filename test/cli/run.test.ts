import { once } from 'node:events'
import { createServer } from 'node:http'
import { readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import Database from 'better-sqlite3'
import { request } from 'undici'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startEmulator, type Emulator } from '../../src/emulator/index.ts'
import { folderWith } from '../config/folder.ts'
import { cli, start, type Running } from './process.ts'

let emulator: Emulator
const running: Running[] = []

beforeEach(async () => {
  emulator = await startEmulator()
})

afterEach(async () => {
  for (const one of running.splice(0)) {
    one.process.kill('SIGKILL')
    await one.ended
  }
  await emulator.close()
})

/** A module as an app would write it, with something of its own that goes on. */
const HOLDING =
  "setInterval(() => undefined, 60_000); export default { kind: 'handlers', events: [], tools: [] }"

async function configured(
  extra = '',
  token = emulator.token,
  more: Record<string, string> = {},
): Promise<string> {
  const folder = await folderWith({})
  const files = await folderWith({
    ...more,
    'sidecar.yaml': [
      `service: { base_url: "${emulator.baseUrl}", token: ${token} }`,
      `store: { url: "sqlite:${folder}/sidecar.db" }`,
      'admin: { listen: "127.0.0.1:0" }',
      'log: { format: json }',
      extra,
    ].join('\n'),
  })
  return `${files}/sidecar.yaml`
}

async function createSession(): Promise<void> {
  const { statusCode, body } = await request(`${emulator.baseUrl}/v1/sessions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${emulator.token}`, 'content-type': 'application/json' },
    body: '{}',
  })
  await body.dump()
  expect(statusCode).toBe(201)
}

/** The status of the readiness probe; null once no process listens. */
async function readiness(port: string): Promise<number | null> {
  try {
    const { statusCode, body } = await request(`http://127.0.0.1:${port}/readyz`)
    await body.dump()
    return statusCode
  } catch {
    return null
  }
}

function run(file: string, env: Record<string, string> = {}): Running {
  const one = start(['run', '-c', file], { env })
  running.push(one)
  return one
}

describe('run', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)('drains and ends with 0 on %s', async (signal) => {
    const one = run(await configured())
    await expect.poll(() => one.err).toContain('sidecar: started')
    one.process.kill(signal)
    expect((await one.ended).code).toBe(0)
  })

  test('keeps running when its log has no reader any more, and stops as usual', async () => {
    const one = run(await configured('handlers: [{ name: app, url: "http://127.0.0.1:9/" }]'))
    await expect.poll(() => one.err).toContain('sidecar: started')
    const admin = /"admin":\{"host":"127.0.0.1","port":(\d+)\}/.exec(one.err)?.[1] ?? ''
    one.process.stderr.destroy()
    // Each of them is logged.
    for (const change of ['pause', 'resume', 'pause', 'resume']) {
      const url = `http://127.0.0.1:${admin}/api/handlers/app/${change}`
      const { statusCode, body } = await request(url, { method: 'POST' })
      await body.dump()
      expect(statusCode).toBeLessThan(300)
    }
    expect(await readiness(admin)).toBe(200)
    one.process.kill('SIGTERM')
    expect((await one.ended).code).toBe(0)
  })

  test('that cannot start ends although a module keeps a timer', async () => {
    const handlers = 'handlers: [{ name: app, module: ./app.mjs }]'
    const file = await configured(handlers, 'svc_pat_unknown', { 'app.mjs': HOLDING })
    expect((await run(file).ended).code).toBe(3)
  })

  test('reports which program holds the store', async () => {
    const file = await configured()
    const first = run(file)
    await expect.poll(() => first.err).toContain('sidecar: started')
    first.process.kill('SIGTERM')
    await first.ended
    const [, database = ''] = /sqlite:([^"]+)/.exec(await readFile(file, 'utf8')) ?? []
    const other = new Database(database)
    other.exec('BEGIN EXCLUSIVE')
    const { code, err } = await run(file).ended
    other.close()
    expect(code).toBe(1)
    expect(err).toContain(
      'error: another program locks or overloads the store; stop it, or wait until it is done',
    )
    expect(err).not.toContain('    at ')
  })

  // [fault process-2]
  test.each(['SIGINT', 'SIGTERM'] as const)(
    'ends at once on a second signal, %s, with a callback still under way',
    async (second) => {
      let asked = 0
      const hanging = createServer(() => {
        asked += 1
      }).listen(0, '127.0.0.1')
      await once(hanging, 'listening')
      const { port } = hanging.address() as AddressInfo
      const one = run(
        await configured(
          `stream: { start_from: beginning }\nhandlers: [{ name: app, url: "http://127.0.0.1:${port}/", timeout: 5m }]`,
        ),
      )
      await createSession()
      await expect.poll(() => asked).toBeGreaterThan(0)
      const admin = /"admin":\{"host":"127.0.0.1","port":(\d+)\}/.exec(one.err)?.[1] ?? ''
      one.process.kill('SIGTERM')
      await expect.poll(() => readiness(admin)).not.toBe(200)
      const signalled = performance.now()
      one.process.kill(second)
      expect((await one.ended).code).toBe(1)
      // Far less than the grace.
      expect(performance.now() - signalled).toBeLessThan(10_000)
      hanging.closeAllConnections()
      hanging.close()
    },
  )

  test('counts a signal once that comes twice, as Ctrl-C on npm start does', async () => {
    let asked = 0
    const slow = createServer((_request, response) => {
      asked += 1
      setTimeout(() => response.writeHead(204).end(), 1500)
    }).listen(0, '127.0.0.1')
    await once(slow, 'listening')
    const { port } = slow.address() as AddressInfo
    const one = run(
      await configured(
        `stream: { start_from: beginning }\nhandlers: [{ name: app, url: "http://127.0.0.1:${port}/" }]`,
      ),
      { npm_lifecycle_event: 'start' },
    )
    await createSession()
    await expect.poll(() => asked).toBeGreaterThan(0)
    one.process.kill('SIGINT')
    const admin = /"admin":\{"host":"127.0.0.1","port":(\d+)\}/.exec(one.err)?.[1] ?? ''
    await expect.poll(() => readiness(admin)).not.toBe(200)
    one.process.kill('SIGINT')
    expect(await one.ended).toMatchObject({ code: 0 })
    slow.close()
  })

  test('is never without a listener between two signals, when the system would end it', async () => {
    const hook = `process.on('removeListener', (event) => {
      if (event === 'SIGTERM' && process.listenerCount('SIGTERM') === 0) process.stderr.write('no listener\\n')
    })`
    const one = start(['run', '-c', await configured()], {
      env: { NODE_OPTIONS: `--import="data:text/javascript,${encodeURIComponent(hook)}"` },
    })
    running.push(one)
    await expect.poll(() => one.err).toContain('sidecar: started')
    one.process.kill('SIGTERM')
    const { code, err } = await one.ended
    expect(code).toBe(0)
    expect(err).not.toContain('no listener')
  })

  test('ends at once on a signal after an error that nothing caught', async () => {
    const folder = await folderWith({
      'handlers.mjs': [
        'setTimeout(() => Promise.reject(new Error("an unhandled error")), 300)',
        'export default { kind: "handlers", events: ["*"], handle: () => new Promise(() => setInterval(() => undefined, 1e6)), tools: [] }',
      ].join('\n'),
    })
    const one = run(
      await configured(
        `stream: { start_from: beginning }\nhandlers: [{ name: app, timeout: 5m, module: "${folder}/handlers.mjs" }]`,
      ),
    )
    await createSession()
    await expect.poll(() => one.err).toContain('an unhandled error')
    const signalled = performance.now()
    one.process.kill('SIGTERM')
    expect((await one.ended).code).toBe(1)
    expect(performance.now() - signalled).toBeLessThan(8000)
  })

  // [fault process-4]
  test('ends with 1 and says why when a module of the app fails unseen', async () => {
    const folder = await folderWith({
      'handlers.mjs': [
        'setTimeout(() => Promise.reject(new Error("an unhandled error")), 300)',
        'export default { kind: "handlers", events: ["*"], handle: () => undefined, tools: [] }',
      ].join('\n'),
    })
    const one = run(await configured(`handlers: [{ name: app, module: "${folder}/handlers.mjs" }]`))
    const { code, err } = await one.ended
    expect(code).toBe(1)
    expect(err).toContain('an unhandled error')
  })

  test('ends with 3 when the service rejects the token, without its value', async () => {
    const { code, err } = await run(await configured('', 'svc_pat_unknown')).ended
    expect(code).toBe(3)
    expect(err).toContain('rejected the token')
    expect(err).not.toContain('svc_pat_unknown')
    expect(err).not.toMatch(/\n {4}at /)
  })

  test('ends with 1 and a sentence when its port is taken', async () => {
    const taken = new URL(emulator.baseUrl).host
    const file = await configured()
    const { code, err } = await start(['run', '-c', file], { env: { SIDECAR_ADMIN__LISTEN: taken } }).ended
    expect(code).toBe(1)
    expect(err).toContain(`${taken} is in use by another program`)
    expect(err).not.toMatch(/\n {4}at /)
  })
})

describe('emulate', () => {
  test('prints its address, accepts its token, and ends on a signal', async () => {
    const one = start(['emulate', '--listen', '127.0.0.1:0', '--token', 'svc_pat_mine'])
    running.push(one)
    await expect.poll(() => one.out).toContain('curl')
    const address = /address +(\S+)/.exec(one.out)?.[1] ?? ''
    const { statusCode, body } = await request(`${address}/v1/health`, {
      headers: { authorization: 'Bearer svc_pat_mine' },
    })
    expect(statusCode).toBe(200)
    expect(await body.json()).toMatchObject({ object: 'health', usable: true })
    one.process.kill('SIGTERM')
    expect(await one.ended).toMatchObject({ code: 0, err: '' })
  })

  test.each(['127.0.0.1:0', '0.0.0.0:0'])(
    'on %s prints an address for clients of this machine',
    async (listen) => {
      const one = start(['emulate', '--listen', listen, '--json'])
      running.push(one)
      await expect.poll(() => one.out).toMatch(/\n$/)
      expect(JSON.parse(one.out)).toEqual({
        address: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
        token: 'svc_pat_dev',
      })
    },
  )

  test('reports a port in use', async () => {
    const { code, err } = await cli(['emulate', '--listen', new URL(emulator.baseUrl).host])
    expect(code).toBe(1)
    expect(err).toMatch(
      /^error: 127\.0\.0\.1:\d+ is in use by another program\n {2}fix: stop that program, or use another port: /,
    )
  })

  test('reports a port of IPv6 in use as it was given', async () => {
    const taken = await startEmulator({ listen: { host: '::1', port: 0 } })
    const at = new URL(taken.baseUrl).host
    const { err } = await cli(['emulate', '--listen', at])
    await taken.close()
    expect(err).toContain(`error: ${at} is in use by another program\n`)
  })
})

describe('check', () => {
  test('finds no problem where there is none', async () => {
    const file = await configured(`handlers: [{ name: app, url: "${emulator.baseUrl}/" }]`)
    const { code, out, err } = await cli(['check', '-c', file])
    expect(err).toBe('')
    expect(out).not.toContain('✗')
    for (const subject of [
      'configuration',
      'token',
      'scopes',
      'clock',
      'discovery',
      'store',
      'handler app',
    ]) {
      expect(out).toMatch(new RegExp(`^✓ ${subject} `, 'm'))
    }
    expect(code).toBe(0)
  })

  // [fault webhook-5]
  test('lists all problems, each with its fix', async () => {
    const { token } = emulator.mintToken(['sessions:read'])
    const file = await configured(
      [
        'handlers: [{ name: app, url: "http://127.0.0.1:9/" }]',
        `tools: [{ name: look, url: "${emulator.baseUrl}/" }]`,
        'webhooks: { enabled: true, public_url: "https://127.0.0.1:9/webhooks" }',
      ].join('\n'),
      token,
    )
    emulator.faults.set({ clock_skew_ms: 3_600_000 })
    const { code, out } = await start(['check', '--json', '-c', file], {
      env: { SIDECAR_STORE__URL: `sqlite:${file}` },
    }).ended
    const findings = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { subject: string; state: string; fix?: string })
    const failed = findings.filter(({ state }) => state === 'fail')
    expect(failed.map(({ subject }) => subject)).toEqual(
      expect.arrayContaining(['scopes', 'clock', 'store', 'handler app']),
    )
    for (const { fix } of failed) expect(fix).not.toBeUndefined()
    expect(findings).toContainEqual(expect.objectContaining({ subject: 'tool look', state: 'ok' }))
    expect(code).toBe(1)
  })

  test('reports a rejected token, and an unreachable service', async () => {
    const rejected = await cli(['check', '-c', await configured('', 'svc_pat_unknown')])
    expect(rejected.code).toBe(1)
    expect(rejected.out).toMatch(/✗ token +the service rejects the token +→ create a new one/)
    const file = await configured()
    await emulator.close()
    const unreachable = await cli(['check', '-c', file])
    expect(unreachable.code).toBe(1)
    expect(unreachable.out).toMatch(/✗ service +http:\S+ is unreachable/)
  })
})
