import { readdir } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { startExampleApp } from '../../src/cli/dev/app.ts'
import { compare, isComplete } from '../../src/cli/dev/compare.ts'
import { Signer } from '../../src/std/signature.ts'
import { consoleOf } from '../../src/cli/dev/config.ts'
import { startService, startSidecar, TOKEN } from '../../src/cli/dev/parts.ts'
import { folderWith } from '../config/folder.ts'
import { freePort, listen } from '../support/listen.ts'
import { until } from '../support/until.ts'
import { start, type Running } from './process.ts'

const STARTING = 'Starting the emulator, the sidecar and an app ...\n'

const running: Running[] = []

afterEach(async () => {
  for (const one of running.splice(0)) {
    one.process.kill('SIGKILL')
    await one.ended
  }
})

async function dev(...args: string[]): Promise<Running & { cwd: string }> {
  const cwd = await folderWith({})
  const one = start(args, { cwd })
  running.push(one)
  return Object.assign(one, { cwd })
}

/** Takes a port, after a wait if it is in use: dev needs it to be in use during the whole test. */
async function hold(port: number): Promise<Server> {
  return await until(
    `port ${port}`,
    () =>
      new Promise<Server | false>((resolve) => {
        const server = createServer()
        server.once('error', () => resolve(false))
        server.listen(port, '127.0.0.1', () => resolve(server))
      }),
  )
}

/** Every number of the summary, computed anew from the lines above it. */
function expectConsistent(out: string): void {
  const [rows = '', ...blocks] = out.split('\n\n').slice(1)
  const summary = blocks.join('\n')
  const lines = rows.split('\n').slice(1)
  const of = (kind: RegExp) => lines.filter((line) => kind.test(line))
  const [facts, delivered] = [of(/^ *[\d.]+ {2}fact /), of(/^ *[\d.]+ {2}callback .* app 204 /)]
  const answered = of(/^ *[\d.]+ {2}tool .* answered /)
  expect(facts.length).toBeGreaterThan(0)
  expect(numbersIn(summary, /(\d+) of (\d+) facts delivered/)).toEqual([delivered.length, facts.length])
  expect(numbersIn(summary, /(\d+) of (\d+) function calls? answered/)).toEqual([
    answered.length,
    of(/^ *[\d.]+ {2}tool /).length,
  ])
  const [found = NaN, demanded = NaN] = numbersIn(summary, /(\d+) of (\d+) expected facts delivered/)
  expect(found).toBe(demanded)
  expect(demanded).toBeLessThanOrEqual(facts.length)
  // Statuses of sessions depend on when they were read; all else is in the ledger.
  const statuses = facts.filter((line) => /fact +session\.(working|idle|requires_action) /.test(line))
  expect(demanded).toBe(facts.length - statuses.length)
  const times = lines.map((line) => Number.parseFloat(line))
  const [, took = '', unit = ''] = /in (\d+\.?\d*) (m?s)$/m.exec(summary) ?? []
  expect(Math.max(...times)).toBeLessThanOrEqual(Number(took) / (unit === 'ms' ? 1000 : 1) + 0.05)
  const callbacks = of(/^ *[\d.]+ {2}callback /)
  expect(callbacks).toHaveLength(delivered.length)
  expect(summary).not.toContain('came more than once')
}

function numbersIn(text: string, pattern: RegExp): number[] {
  return (pattern.exec(text) ?? []).slice(1).map(Number)
}

describe('the demonstration', () => {
  test('with --once plays the tour, shows it, and exits with 0 when everything was delivered and answered', async () => {
    const { code, out, err } = await (await dev('--once')).ended
    expect(err).toBe(STARTING)
    expect(out).toMatch(/✓ (\d+) of \1 facts delivered\n/)
    expect(out).toMatch(/✓ 3 of 3 function calls answered\n/)
    expect(out).toContain('✓ everything is idle\n')
    expectConsistent(out)
    expect(out).toMatch(/fact +turn\.settled +Partial artifacts +(stream|webhook|poll)/)
    expect(out).toMatch(/fact +session\.failed +A run that cannot start/)
    expect(out).toMatch(/tool +lookup_order +Two calls at once +answered .* \{"order_id":"42"/)
    expect(out).toMatch(
      /tool +check_stock +A tool that fails +answered error .* The tool could not complete this request\./,
    )
    expect(out).toMatch(/callback +turn\.failed +A failed turn +app 204/)
    expect(out).not.toContain('\u001b[')
    expect(code).toBe(0)
  })

  test('with --once exits with 1 when it is interrupted', async () => {
    const one = await dev('--once')
    await expect.poll(() => one.out).toContain('sidecar')
    one.process.kill('SIGTERM')
    const { code, out } = await one.ended
    expect(out).not.toContain('everything is idle')
    expect(code).toBe(1)
  })

  test('plays the steps of a given scenario file', async () => {
    const folder = await folderWith({
      'mine.yaml': 'name: mine\nsessions:\n  - title: Mine alone\n    messages: ["say Hello"]\n',
    })
    const { code, out } = await (await dev('dev', '--once', '--scenario', `${folder}/mine.yaml`)).ended
    expect(code).toBe(0)
    expect(out).toMatch(/fact +turn\.completed +Mine alone/)
    expect(out).toContain('0 of 0 function calls answered')
    expectConsistent(out)
  })

  test('with --once refuses a scenario that plays nothing', async () => {
    const folder = await folderWith({ 'none.yaml': 'name: none\n' })
    const { code, out, err } = await (await dev('dev', '--once', '--scenario', `${folder}/none.yaml`)).ended
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(/none\.yaml has no sessions: there is nothing to run\n$/)
  })

  test('prints a line of JSON for each event, for programs', async () => {
    const { code, out, err } = await (await dev('--once', '--json')).ended
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines[0]).toMatchObject({ kind: 'started', token: 'svc_pat_dev' })
    expect(lines.at(-1)).toMatchObject({
      kind: 'summary',
      complete: true,
      missing: [],
      under_way: [],
      calls: { asked: 3, answered: 3 },
    })
    for (const kind of ['fact', 'callback'])
      expect(lines.filter((line) => line['kind'] === kind).length).toBeGreaterThan(100)
    expect(lines).toContainEqual(expect.objectContaining({ kind: 'tool', name: 'lookup_order' }))
    const ids = (kind: string) => new Set(lines.filter((line) => line['kind'] === kind).map(({ id }) => id))
    expect(ids('callback')).toEqual(ids('fact'))
    const { facts, delivered, expected, ms } = lines.at(-1) ?? {}
    expect({ facts, delivered }).toEqual({ facts: ids('fact').size, delivered: ids('callback').size })
    expect(expected).toBeLessThanOrEqual(Number(facts))
    expect(lines.filter((line) => line['kind'] === 'tool')).toHaveLength(3)
    const started = Number(lines[1]?.['at'])
    for (const { at } of lines.slice(1, -1)) expect(Number(at) - started).toBeLessThanOrEqual(Number(ms))
  })

  test('goes on, finds another port where its own is taken, answers the other commands, and ends on a signal', async () => {
    const taken = await hold(8481)
    const one = await dev()
    await expect.poll(() => one.out).toContain('Still running')
    taken.close()
    const url = /sidecar +(http:\S+)/.exec(one.out)?.[1] ?? ''
    expect(url).not.toContain(':8481')
    const sessions = await start(['sessions', '--json', '--url', url]).ended
    expect(sessions.out.trimEnd().split('\n')).toHaveLength(8)
    const events = await start(['events', '--type', 'turn.settled', '--url', url]).ended
    expect(events.out.match(/turn\.settled/g)?.length).toBeGreaterThan(4)
    one.process.kill('SIGINT')
    expect(await one.ended).toMatchObject({ code: 0, err: STARTING })
    expect(await readdir(one.cwd)).toEqual([])
  })
})

test('a start that loses its port to another program takes the next one', async () => {
  await using stack = new AsyncDisposableStack()
  const emulator = await startService(stack, { name: 'none' })
  await using taken = await listen((_request, response) => response.end())
  const folder = await folderWith({})
  const ports = [taken.port, await freePort()]
  const configure = () =>
    Promise.resolve({
      service: { base_url: emulator.baseUrl, token: TOKEN },
      store: { url: `sqlite:${folder}/sidecar.db` },
      admin: { listen: `127.0.0.1:${ports.shift()}` },
      log: { level: 'error' as const },
    })
  const sidecar = await startSidecar({}, stack, configure, [])
  const health = await request(`${consoleOf(sidecar).url}/livez`)
  expect([await health.body.text(), ports]).toEqual(['ok\n', []])
})

describe('the example app', () => {
  test('accepts only what is signed with its secret', async () => {
    const app = await startExampleApp()
    const body = JSON.stringify({
      id: 'evt_1',
      type: 'tool.call',
      session_id: 's',
      data: {},
      call_id: 'call_1',
      arguments: { sku: 'TEA-01' },
    })
    const post = async (
      path: string,
      secret: string,
      seconds = Math.floor(Date.now() / 1000),
    ): Promise<number> => {
      const { statusCode, body: answer } = await request(app.url + path, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...new Signer({ current: [secret] }).sign('evt_1', seconds * 1000, body).headers,
        },
        body,
      })
      await answer.dump()
      return statusCode
    }
    const other = 'whsec_b3RoZXI='
    for (const path of ['/agent-events', '/tools/check_stock']) {
      expect(await post(path, other)).toBe(401)
      expect(await post(path, app.secret, 1)).toBe(401)
    }
    expect(app.received.size).toBe(0)
    expect(await post('/agent-events', app.secret)).toBe(204)
    expect(await post('/agent-events', app.secret)).toBe(204)
    expect(await post('/tools/check_stock', app.secret)).toBe(200)
    expect(app.received.get('evt_1')?.times).toBe(2)
    await app.close()
  })
})

/** All that was made was delivered. */
const TALLY = { facts: 5, delivered: 5 }

describe('the comparison with the ledger', () => {
  const ledger = {
    events: [{ seq: 1, at: 0, type: 'agent.message', session_id: 's', turn_id: 't' }],
    sessions: [
      { id: 's', title: 'S', status: 'idle', updated_at: 0, deleted_at: null, required: [], queued: 0 },
    ],
    turns: [
      {
        id: 't',
        session_id: 's',
        status: 'completed',
        completed_at: 1,
        artifacts: 'ready' as const,
        skipped: [],
        published: [],
        error: null,
      },
    ],
    actions: [],
    answers: [],
  }
  const callback = (type: string, data: object) => ({
    times: 1,
    event: { type, id: type, session_id: 's', data } as never,
  })
  const all = [
    callback('agent.message', { seq: 1 }),
    callback('session.created', {}),
    ...['turn.started', 'turn.completed', 'turn.settled'].map((type) =>
      callback(type, { turn: { id: 't' } }),
    ),
  ]
  const received = (entries: typeof all) => new Map(entries.map((entry, index) => [String(index), entry]))

  test('is complete when every fact was delivered', () => {
    expect(isComplete(compare(ledger, received(all), TALLY))).toBe(true)
    expect(isComplete(compare(ledger, received(all), { facts: 6, delivered: 5 }))).toBe(false)
  })

  test.each(all.map((_, index) => index))('misses fact %i when it was not delivered', (index) => {
    const comparison = compare(ledger, received(all.toSpliced(index, 1)), TALLY)
    expect(comparison.missing).toHaveLength(1)
    expect(isComplete(comparison)).toBe(false)
  })

  test('waits for running turns and unanswered calls', () => {
    const working = {
      ...ledger,
      turns: ledger.turns.map((turn) => ({ ...turn, status: 'working', artifacts: null })),
    }
    expect(isComplete(compare(working, received(all), TALLY))).toBe(false)
  })
})
