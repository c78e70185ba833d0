import { statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { folderWith } from '../config/folder.ts'
import { Rig } from '../support/rig.ts'
import { listen, type Listening } from '../support/listen.ts'
import { until } from '../support/until.ts'
import { cli, start, type Ended } from './process.ts'

/** A handler that answers with the status that was set last. */
async function handlerOf(): Promise<{ server: Listening; answer: (status: number) => void }> {
  let status = 204
  const server = await listen((request, response) => {
    request.resume().on('end', () => response.writeHead(status).end())
  })
  return { server, answer: (next) => (status = next) }
}

/** A sidecar with a handler `app` that gives up at once, and a command line that asks it. */
async function stage() {
  const { server, answer } = await handlerOf()
  const retry = { attempts: 1, base: '10ms', max: '10ms' }
  const rig = await Rig.open({
    handlers: () => [{ name: 'app', url: `${server.url}/h`, events: ['turn.*'], retry }],
  })
  const ask = (...args: string[]): Promise<Ended> => cli([...args, '--url', rig.program?.admin ?? ''])
  const rows = async (...args: string[]): Promise<Record<string, unknown>[]> =>
    (await ask(...args, '--limit', '1000', '--json')).out
      .trimEnd()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
  return { rig, server, answer, ask, rows }
}

test('a retry of dead letters counts the delivered and the dead facts, and fails when any is dead', async () => {
  const { rig, server, answer, ask, rows } = await stage()
  await using _rig = rig
  await using _server = server
  answer(500)
  await rig.client.start('say Hello')
  await until('three dead letters', async () => (await rows('deliveries', '--status', 'dead')).length === 3)

  const again = await ask('deliveries', 'retry', '--dead', '--wait')
  expect(again).toMatchObject({
    code: 1,
    out: '3 dead deliveries will be sent again\n0 delivered, 3 dead again\n',
  })
  const [first] = await rows('deliveries', '--status', 'dead')
  const one = await ask('deliveries', 'retry', String(first?.['id']), '--wait')
  expect(one).toMatchObject({
    code: 1,
    out: `${String(first?.['id'])} will be sent again\n${String(first?.['id'])} is dead\n`,
  })

  answer(204)
  const well = await ask('deliveries', 'retry', String(first?.['id']), '--wait')
  expect(well).toMatchObject({ code: 0, out: expect.stringMatching(/ is delivered\n$/) })
  const rest = await ask('deliveries', 'retry', '--dead', '--wait', '--json')
  expect(rest.code).toBe(0)
  expect(rest.out).toBe('{"count":2,"dry_run":false}\n{"delivered":2,"dead":0}\n')
  expect(await rows('deliveries', '--status', 'dead')).toEqual([])

  answer(500)
  const replayed = await ask('replay', '--handler', 'app', '--from', '1h', '--wait')
  expect(replayed).toMatchObject({ code: 1, out: 'app gets 3 facts again\n0 delivered, 3 dead\n' })
  expect(await rows('deliveries', '--status', 'dead')).toHaveLength(3)
})

test('what is pending for a paused handler is paused, and every count of it is that of the list', async () => {
  const { rig, server, ask, rows } = await stage()
  await using _rig = rig
  await using _server = server
  await ask('handlers', 'pause', 'app')
  await rig.client.start('say Hello')
  await until('three pending', async () => (await rows('deliveries', '--status', 'pending')).length === 3)
  const { out } = await ask('deliveries', '--status', 'pending')
  const lines = out.trimEnd().split('\n').slice(1)
  expect(lines.map((line) => line.split(/ {2,}/).at(-1))).toEqual(['paused', 'paused', 'paused'])
  const [id = ''] = lines[0]?.split(' ') ?? []
  expect((await ask('deliveries', 'show', id)).out).toMatch(/^next {6}paused$/m)

  const status = (await ask('status')).out
  expect(status).toContain('handler app is paused for ')
  expect(status).toMatch(/: paused by an operator; 3 deliveries pending/)
  expect(status).toMatch(/deliveries pending {2}3\n/)
  expect(status).not.toMatch(/\d{13}/)
  expect((await ask('handlers')).out).toMatch(/^app +paused +3 +0 /m)
})

test('deliveries of a handler that was renamed are shown with the fix, and sent when a handler has the name again', async () => {
  const { rig, server, ask, rows } = await stage()
  await using _rig = rig
  await using _server = server
  await ask('handlers', 'pause', 'app')
  await rig.client.start('say Hello')
  await until('three pending', async () => (await rows('deliveries', '--status', 'pending')).length === 3)
  const before = rig.config
  await rig.stop()
  rig.config = { ...before, handlers: before.handlers?.map((one) => ({ ...one, name: 'other' })) ?? [] }
  await rig.start()

  const { out } = await ask('status')
  expect(out).toContain('handler app is not configured: 3 deliveries pending')
  expect(out).toContain('give a handler this name again')
  expect((await ask('handlers')).out).toMatch(/^other +up +0 +0 [^]*^app +removed +3 +0 /m)
  const [first] = await rows('deliveries', '--status', 'pending')
  expect((await ask('deliveries', 'show', String(first?.['id']))).out).toMatch(/^next {6}no such handler$/m)
  expect((await ask('handlers', 'resume', 'app')).err).toContain('handler app is not configured. First give')
  const waited = await ask('deliveries', 'retry', '--dead', '--wait')
  expect(waited).toMatchObject({ code: 0, err: '' })

  await rig.stop()
  rig.config = before
  await rig.start()
  await ask('handlers', 'resume', 'app')
  await until('none pending', async () => (await rows('deliveries', '--status', 'pending')).length === 0)
  expect((await ask('status')).out).toMatch(/needs attention\n {2}none\n/)
})

test('followed facts have the same columns as stored facts', async () => {
  const { rig, server, ask, rows } = await stage()
  await using _rig = rig
  await using _server = server
  await rig.client.start('say Hello')
  await until('an end', async () => (await rows('events', '--type', 'turn.settled')).length === 1)
  const following = start(['events', '--follow', '-n', '2', '--url', rig.program?.admin ?? ''])
  await until('the table', () => following.out.split('\n').length > 3)
  await rig.client.start('say Hello')
  await until(
    'what follows',
    () => /turn\.settled[^]*turn\.settled/.test(following.out) || following.out.split('\n').length > 8,
  )
  following.process.kill('SIGTERM')
  await following.ended
  const [titles = '', ...lines] = following.out.trimEnd().split('\n')
  const ids = new Set((await rows('events')).map(({ id }) => id))
  const at = titles.indexOf('ID')
  for (const line of lines) expect(ids).toContain(line.slice(at))
  expect((await ask('events', '-n', '3')).out.trimEnd().split('\n')).toHaveLength(4)
})

test('facts are followed beyond a restart of the sidecar', async () => {
  const { rig, server, rows } = await stage()
  await using _rig = rig
  await using _server = server
  const admin = rig.program?.admin ?? ''
  await rig.client.start('say Hello')
  await until('an end', async () => (await rows('events', '--type', 'turn.settled')).length === 1)
  const following = start(['events', '--follow', '--json', '--url', admin])
  const ends = () => following.out.match(/"type":"turn\.settled"/g)?.length
  await until('the first end', () => ends() === 1)
  await rig.stop()
  await until('a warning', () => following.err !== '')
  rig.config = { ...rig.config, admin: { listen: new URL(admin).host } }
  await rig.start()
  await rig.client.start('say Hello')
  await until('the second end', () => ends() === 2)
  await until('a word on it', () => /again$/m.test(following.err))
  following.process.kill('SIGTERM')
  await following.ended
  expect(following.err).toMatch(/^warning: .*; trying again\nit answers again\n$/)
})

test('the size of a store in use includes its WAL, and its other numbers agree with the lists', async () => {
  const { rig, server, rows } = await stage()
  await using _rig = rig
  await using _server = server
  await rig.client.start('say Hello')
  await until('three delivered', async () => (await rows('deliveries', '--status', 'delivered')).length === 3)
  const store = `${rig.folder}/sidecar.db`
  const folder = await folderWith({
    'sidecar.yaml': `service: { base_url: "http://127.0.0.1:9", token: x }\nstore: { url: "sqlite:${store}" }\n`,
  })
  const onDisk = () => Math.ceil((statSync(store).size + statSync(`${store}-wal`).size) / 1024)
  // The sidecar goes on polling meanwhile.
  const before = onDisk()
  const { code, out } = await cli(['store', 'check', '-c', `${folder}/sidecar.yaml`])
  expect(code).toBe(0)
  const [, size, unit] = /: ([\d.]+) (KiB|MiB), /.exec(out) ?? []
  const kib = Number(size) * (unit === 'MiB' ? 1024 : 1)
  // Half of a tenth of a mebibyte.
  const rounded = unit === 'MiB' ? 52 : 0
  expect(kib).toBeGreaterThanOrEqual(before - rounded)
  expect(kib).toBeLessThanOrEqual(onDisk() + rounded)
  const { length } = await rows('events')
  expect(out).toContain(`\n${length} facts, 0 pending deliveries, 0 dead letters, `)
})

test('check counts the tools of modules, and its summary agrees with its lines', async () => {
  const folder = await folderWith({
    'handlers.mjs': `const tool = { name: 'lookup_order', description: 'x', parameters: { type: 'object' }, run: () => 'x', settings: {} }
export default { kind: 'handlers', events: ['*'], handle: () => undefined, tools: [tool] }`,
    'sidecar.yaml': `service: { base_url: "http://127.0.0.1:9", token: x }
handlers: [{ name: app, module: ./handlers.mjs }, { name: down, url: "http://127.0.0.1:9/" }]\n`,
  })
  const { code, out } = await cli(['check', '-c', `${folder}/sidecar.yaml`])
  expect(code).toBe(1)
  expect(out).toContain(': 2 handlers, tools of 1 module\n')
  expect(out).toMatch(/^✓ tool lookup_order +is in a module$/m)
  const marked = (mark: string) => out.split('\n').filter((line) => line.startsWith(mark)).length
  expect(out).toContain(`\n${marked('✗')} problems. How to fix:\n`)
  const advice = out.split('How to fix:\n')[1]?.trimEnd().split('\n') ?? []
  expect(advice).toHaveLength(marked('✗') + marked('!'))
})
