import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { request } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { cli, start } from '../cli/process.ts'
import { SECRET } from '../support/app.ts'
import { Rig } from '../support/rig.ts'
import { until } from '../support/until.ts'

const INDEX = fileURLToPath(new URL('../../src/index.ts', import.meta.url))

/** One of each kind, recognisable wherever it turns up; one that JSON writes otherwise than it is. */
const CANARY = {
  admin: 'canary-of-the-admin-token-0123456789',
  webhook: 'canary-of-a-webhook-secret-0123456789"quoted\\',
  tool: 'canary thrown by a tool: password is hunter2',
  handler: 'canary thrown by a handler: password is hunter3',
  forged: 'canary-of-a-wrong-admin-token-0123456789',
}

const moduleText = (): string => `
  import { defineHandlers, tool } from ${JSON.stringify(INDEX)}
  export default defineHandlers({
    on: {
      'turn.completed': () => { throw new Error(${JSON.stringify(CANARY.handler)}) },
      'session.created': (event) => { if (event.data.session.title === 'crash') Promise.reject(new Error('asked to crash')) },
    },
    tools: [tool({ name: 'inside', description: 'throws', input: { type: 'object' }, retry: { attempts: 2, base: '10ms', max: '10ms' },
      run: () => { throw new TypeError(${JSON.stringify(CANARY.tool)}) } })],
  })`

// [fault tool-8]
test('no secret and nothing thrown is in a log, a metric, an answer, an error, a callback or the database', async () => {
  await using rig = await Rig.open({ start: false, tools: { outside: {} } })
  const { folder, config } = rig
  const module = path.join(folder, 'handlers.ts')
  await writeFile(module, moduleText())
  const [app] = config.handlers ?? []
  if (app === undefined) throw new Error('the rig has no handler')
  const file = path.join(folder, 'sidecar.json')
  const retry = { attempts: 2, base: '10ms', max: '20ms' }
  const whole = {
    ...config,
    handlers: [
      { ...app, retry },
      { name: 'inside', module, events: ['turn.completed', 'session.created'], retry },
    ],
    admin: { ...config.admin, token: CANARY.admin },
    webhooks: { ...config.webhooks, secrets: [CANARY.webhook] },
    log: { level: 'debug', format: 'json' },
  }
  await writeFile(file, JSON.stringify(whole))

  const running = start(['run', '-c', file], { cwd: folder })
  onTestFinished(() => void running.process.kill('SIGKILL'))
  const port = await until(
    'started sidecar',
    () => {
      if (running.process.exitCode !== null) throw new Error(running.err)
      return /"admin":\{"host":"127.0.0.1","port":(\d+)\}/.exec(running.err)?.[1]
    },
    30_000,
  )
  const base = `http://127.0.0.1:${port}`
  const seen: string[] = []
  const get = async (
    route: string,
    token: string = CANARY.admin,
    method: 'GET' | 'POST' = 'GET',
  ): Promise<string> => {
    const { body, headers } = await request(base + route, {
      method,
      headers: { authorization: `Bearer ${token}` },
    })
    const text = `${JSON.stringify(headers)} ${await body.text()}`
    seen.push(text)
    return text
  }
  await until('first look', async () => (await get('/startupz')).includes('ok'))

  // Everything that goes wrong: a handler that fails, tools that throw, forgeries, a revoked token.
  rig.app.handle = (_callback, nth) => (nth === 1 ? { status: 500, body: 'no' } : {})
  const session = await rig.client.withTools({ inside: null, outside: null }, { title: 'canary' })
  await rig.client.send(session, 'call inside {"n":1} & call outside {}', 'say {{last}}')
  await rig.client.reached(session, 'idle')
  await until('dead letter', async () => /"status":"dead"/.test(await get('/api/deliveries?handler=inside')))
  const hooks = config.webhooks?.public_url ?? ''
  const forged = await request(hooks, {
    method: 'POST',
    headers: { 'x-service-timestamp': '1', 'x-service-signature': 'a' },
    body: '{}',
  })
  seen.push(await forged.body.text())
  await get('/api/status', CANARY.forged)
  await get('/api/sessions?nonsense=1')
  await get('/api/replay', CANARY.admin, 'POST')
  rig.emulator.revokeToken(rig.token.id)
  await until('rejected token', () => running.err.includes('rejected the token'))

  const { paths } = JSON.parse((await get('/openapi.json')).replace(/^\{.*?\} (?=\{)/, '')) as {
    paths: Record<string, { get?: unknown }>
  }
  for (const [route, { get: reading }] of Object.entries(paths))
    if (reading !== undefined && !route.startsWith('/v1/'))
      await get(route.replace('{id}', session).replace(/\{\w+\}/, 'x'))
  expect(seen.length).toBeGreaterThan(15)
  for (const args of [
    ['config', 'print', '-c', file],
    ['status', '--json', '--url', base],
    ['check', '--json', '-c', file],
  ]) {
    const { out, err } = await cli(args, { SIDECAR_ADMIN_TOKEN: CANARY.admin })
    expect(out).not.toBe('')
    seen.push(out, err)
  }
  seen.push(databaseText(path.join(folder, 'sidecar.db')))
  for (const { raw, headers } of [...rig.app.callbacks, ...rig.app.runs])
    seen.push(raw, JSON.stringify(headers))
  seen.push(JSON.stringify(rig.emulator.ledger().answers))

  running.process.kill('SIGTERM')
  const { code, out, err } = await running.ended
  expect(code).toBe(0)
  seen.push(out, err)
  expect(err).toContain('"level":20')

  const secrets = [...Object.values(CANARY), SECRET, rig.token.token]
  for (const secret of secrets)
    for (const form of [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
      Buffer.from(secret).toString('base64'),
    ])
      expect(seen.filter((text) => text.includes(form)).map((text) => around(text, form))).toEqual([])
})

test('what a crash leaves on standard error has no secret in it', { timeout: 40_000 }, async () => {
  await using rig = await Rig.open({ start: false })
  const { folder, config } = rig
  const module = path.join(folder, 'handlers.ts')
  await writeFile(module, moduleText())
  const file = path.join(folder, 'sidecar.json')
  const handlers = [{ name: 'inside', module, events: ['session.created'] }]
  const log = { level: 'debug', format: 'json' }
  await writeFile(
    file,
    JSON.stringify({ ...config, handlers, admin: { ...config.admin, token: CANARY.admin }, log }),
  )
  const running = start(['run', '-c', file], { cwd: folder })
  onTestFinished(() => void running.process.kill('SIGKILL'))
  await until('started sidecar', () => running.err.includes('sidecar: started'), 20_000)
  await rig.client.create({ title: 'crash' })
  const { code, err } = await running.ended
  expect([code, err.includes('asked to crash')]).toEqual([1, true])
  for (const secret of [CANARY.admin, rig.token.token]) expect(err).not.toContain(secret)
})

/** Every row, but for the secrets that the service gave us to check its webhooks by, which have to be kept. */
function databaseText(file: string): string {
  const db = new Database(file, { readonly: true })
  try {
    const tables = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()
    expect(tables).toContain('delivery_rows')
    return JSON.stringify(tables.filter((name) => name !== 'subscriptions').map((name) => db.prepare(`SELECT * FROM "${name}"`).safeIntegers().all()), (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value)) // prettier-ignore
  } finally {
    db.close()
  }
}

function around(text: string, part: string): string {
  const at = text.indexOf(part)
  return text.slice(Math.max(0, at - 120), at + 60)
}
