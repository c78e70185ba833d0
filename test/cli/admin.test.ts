import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { folderWith } from '../config/folder.ts'
import { listen } from '../support/listen.ts'
import { adminApi, paged } from './admin-api.ts'
import { cli, start } from './process.ts'

const AT = Date.parse('2026-11-21T05:00:00Z')

const deliveries = ['dlv_5_1', 'dlv_4_1', 'dlv_3_1'].map((id, index) => ({
  id,
  fact_id: `evt_${id}`,
  type: 'turn.settled',
  handler: 'app',
  session_id: 's',
  status: ['pending', 'delivered', 'dead'][index],
  attempts: [
    { at: AT, status: 503, ms: 3 },
    ...(index === 2 ? [{ at: AT, error: 'refused \u001b[2J', ms: 1 }] : []),
  ],
  next_at: index === 0 ? Date.now() + 100_000 : null,
}))

const fact = (id: string, type: string): Record<string, unknown> => ({
  id,
  type,
  timestamp: '2026-11-21T05:00:00.123Z',
  session_id: 'session-1',
  seq: null,
  data: {},
  seen: { webhook: AT + 20, stream: AT + 3 },
})

describe('lists', () => {
  test('are tables for people: aligned, without the control characters of a hostile text', async () => {
    const { url } = await adminApi({
      'GET /api/deliveries': paged(deliveries, (row) => row['id']),
      'GET /api/handlers': paged([{ name: 'app', state: 'up' }], (row) => row['name']),
    })
    const { code, out } = await cli(['deliveries', '--url', url])
    expect(code).toBe(0)
    const [titles = '', ...rows] = out.trimEnd().split('\n')
    expect(titles).toMatch(/^ID +STATUS +TYPE +SESSION +HANDLER +TRIES +LAST ANSWER +NEXT$/)
    expect(rows).toHaveLength(3)
    const column = titles.indexOf('LAST ANSWER')
    expect(rows.map((row) => row.slice(column, column + 12).trim())).toEqual(['503', '503', 'refused  [2J'])
    expect(rows[0]).toMatch(/in (100 s|2 min)$/)
    expect(out).not.toContain('\u001b')
  })

  test('are one JSON object a line for programs, page after page, as many as asked for', async () => {
    const { url, asked } = await adminApi({ 'GET /api/deliveries': paged(deliveries, (row) => row['id']) })
    const { out } = await cli(
      ['deliveries', '--json', '--status', 'dead', '--handler', 'app', '--session', 's-1', '--limit', '3'],
      {
        SIDECAR_ADMIN_URL: url,
      },
    )
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual(deliveries)
    expect(asked.map((one) => one.url)).toEqual([
      '/api/deliveries?status=dead&handler=app&session_id=s-1&limit=3',
      '/api/deliveries?status=dead&handler=app&session_id=s-1&limit=1&after=dlv_4_1',
    ])
  })

  test.each([
    ['sessions', '/api/sessions', 'no sessions'],
    ['calls', '/api/calls', 'no calls'],
    ['handlers', '/api/handlers', 'no handlers'],
    ['events', '/api/events', 'no facts yet'],
    ['deliveries', '/api/deliveries', 'no deliveries'],
  ])('of %s say so when they are empty', async (command, path, said) => {
    const { url } = await adminApi({ [`GET ${path}`]: paged([], () => '') })
    expect(await cli([command, '--url', url])).toEqual({ code: 0, out: `${said}\n`, err: '' })
  })

  test('of facts follow new facts', async () => {
    const rows = [fact('evt_1', 'turn.started'), fact('evt_2', 'turn.completed')]
    const { url } = await adminApi({
      'GET /api/events': (asked, query) =>
        paged(query.get('order') === 'desc' ? rows.toReversed() : rows, (row) => row['id'])(asked, query),
    })
    const running = start(['events', '--follow', '--url', url])
    await expect.poll(() => running.out).toContain('turn.completed')
    expect(running.out).toMatch(/turn\.started[^]*turn\.completed/)
    rows.push(fact('evt_3', 'turn.settled'))
    await expect.poll(() => running.out).toMatch(/turn\.settled .* stream +evt_3\n$/)
    expect(running.out.match(/turn\.completed/g)).toHaveLength(1)
    running.process.kill('SIGTERM')
    await running.ended
  })

  test('of facts of a rare type follow new facts after the last one was pruned', async () => {
    const rows = [fact('evt_1', 'session.failed'), fact('evt_2', 'turn.completed')]
    const { url, asked } = await adminApi({
      'GET /api/events': (one, query) => {
        const type = query.get('type')
        const after = query.get('after')
        const from = after === null ? 0 : rows.findIndex(({ id }) => id === after) + 1
        if (after !== null && from === 0) return paged([], () => '')(one, query)
        const left = rows.slice(from).filter((row) => type === null || row['type'] === type)
        query.delete('after')
        return paged(query.get('order') === 'desc' ? left.toReversed() : left, (row) => row['id'])(one, query)
      },
    })
    const running = start(['events', '--follow', '--type', 'session.failed', '--json', '--url', url])
    await expect.poll(() => running.out).toContain('evt_1')
    const looks = asked.length
    await expect.poll(() => asked.length).toBeGreaterThan(looks + 4)
    rows.shift()
    rows.push(fact('evt_3', 'session.failed'))
    await expect.poll(() => running.out).toContain('evt_3')
    expect(running.out.match(/evt_/g)).toHaveLength(2)
    running.process.kill('SIGTERM')
    await running.ended
  })

  test('end without an error when the reader closes the pipe', async () => {
    const many = Array.from({ length: 400 }, (_, index) => fact(`evt_${index}`, 'agent.message'))
    const { url } = await adminApi({ 'GET /api/events': paged(many, (row) => row['id']) })
    const running = start(['events', '--json', '--limit', '400', '--url', url])
    running.process.stdout.destroy()
    expect(await running.ended).toEqual({ code: 0, out: '', err: '' })
  })
})

describe('actions', () => {
  // An address swallows a segment that is a dot, and what is left of this one means all of them.
  test('on a delivery whose id is a dot do not change all deliveries', async () => {
    const { url, asked } = await adminApi({ 'POST /api/deliveries/retry': () => ({ count: 12 }) })
    expect((await cli(['deliveries', 'retry', '.', '--url', url])).code).toBe(1)
    expect(asked.map(({ url }) => url)).toEqual(['/api/deliveries/%252E/retry', '/openapi.json'])
  })

  test('request the action of the command and print what was accepted', async () => {
    const { url, asked } = await adminApi({
      'POST /api/deliveries/dlv_5_1/retry': () => ({ count: 1, dry_run: false }),
      'POST /api/deliveries/retry': () => ({ count: 12, dry_run: true }),
      'POST /api/replay': () => ({ handler: 'app', count: 3 }),
      'POST /api/handlers/app/pause': () => ({ handler: 'app', paused: true }),
      'POST /api/handlers/app/resume': () => ({ handler: 'app', paused: false }),
    })
    const say = async (...args: string[]): Promise<string> => (await cli([...args, '--url', url])).out
    expect(await say('deliveries', 'retry', 'dlv_5_1')).toBe('dlv_5_1 will be sent again\n')
    const since = '2026-11-21T05:00:00Z'
    expect(
      await say('deliveries', 'retry', '--dead', '--handler', 'app', '--since', since, '--dry-run'),
    ).toBe('12 dead deliveries would be sent again\n')
    expect(await say('replay', '--handler', 'app', '--from', '812')).toBe('app gets 3 facts again\n')
    expect(await say('handlers', 'pause', 'app')).toBe('app is paused; its backlog is kept\n')
    expect(await say('handlers', 'resume', 'app')).toBe('app is resumed\n')
    expect(asked.map(({ body }) => body)).toEqual([
      null,
      { status: 'dead', handler: 'app', since: '2026-11-21T05:00:00.000Z', dry_run: true },
      { handler: 'app', from: '812' },
      null,
      null,
    ])
  })
})

test('deliveries show prints each attempt of one delivery and the response of the handler', async () => {
  const record = {
    ...deliveries[2],
    last_answer: 'Error: no such order\n    at \u001b[2Jlookup',
  }
  const { url } = await adminApi({ 'GET /api/deliveries/dlv_3_1': () => record })
  const { code, out } = await cli(['deliveries', 'show', 'dlv_3_1', '--url', url])
  expect(code).toBe(0)
  expect(out).toMatch(
    /^delivery {2}dlv_3_1\nfact {6}turn\.settled evt_dlv_3_1\nsession {3}s\nhandler {3}app\nstatus {4}dead\n/,
  )
  expect(out).toMatch(/\n\S+ \S+ +503 +3 ms +-\n\S+ \S+ +- +1 ms +refused {2}\[2J\n/)
  expect(out).toMatch(
    /The last failed response of the handler:\n {2}│ Error: no such order\n {2}│ at {2}\[2Jlookup\n$/,
  )
  expect(JSON.parse((await cli(['deliveries', 'show', 'dlv_3_1', '--json', '--url', url])).out)).toEqual(
    JSON.parse(JSON.stringify(record)),
  )
  const { code: unknown, err } = await cli(['deliveries', 'show', 'dlv_9_9', '--url', url])
  expect({ unknown, err }).toEqual({
    unknown: 1,
    err: `error: ${url}/api/deliveries/dlv_9_9 answered 404: no /api/deliveries/dlv_9_9 here\n`,
  })
})

describe('status', () => {
  const need = (given: object) => ({
    id: 'x',
    tone: 'warn',
    what: 'w',
    since: null,
    detail: null,
    advice: 'do it',
    page: '#/',
    ...given,
  })
  const list = (rows: Record<string, unknown>[]) =>
    paged(rows, (row) => row['name'] ?? row['call_id'] ?? row['id'])

  test('begins with what needs attention, and ends with the routes', async () => {
    const status = {
      version: '0.1.0',
      channels: {
        stream: { state: 'stopped', since: AT, last_error: 'refused' },
        poll: { state: 'live', since: AT },
      },
      routes: [
        { operation: 'answer', method: 'POST', path: '/v1/x', how: 'document' },
        { operation: 'readTurn', method: null, path: null, how: 'missing', reason: 'no GET of one turn' },
      ],
      queues: { deliveries_pending: 7 },
      throughput: [
        { at: AT, facts: 2, delivered: 3, failed: 1, calls: 0 },
        { at: AT + 60_000, facts: 20, delivered: 30, failed: 0, calls: 1 },
      ],
      token: { state: 'rejected' },
      something_new: { a: 1 },
    }
    const { url } = await adminApi({
      'GET /api/status': () => status,
      'GET /api/handlers': list([
        { name: 'app', state: 'paused', since: AT, pending: 7, dead: 2, last_error: 'by an operator' },
        { name: 'mail', state: 'up', since: AT, pending: 1, dead: 0, last_error: null },
        { name: 'slow', state: 'up', since: AT, pending: 2, dead: 0, last_error: null },
      ]),
      'GET /api/attention': () => ({
        object: 'list',
        data: [
          need({
            tone: 'bad',
            what: 'the service rejects the token',
            detail: 'no request',
            advice: 'a new one',
          }),
          need({
            tone: 'bad',
            what: 'channel stream is stopped',
            since: AT,
            advice: 'a new token starts it',
          }),
          need({ what: 'a \u001b[31mred\u0007 name', detail: 'with\nlines' }),
        ],
      }),
    })
    const { out } = await cli(['status', '--url', url])
    const at = (text: string) => {
      expect(out).toContain(text)
      return out.indexOf(text)
    }
    const order = [
      'needs attention\n  ✗ the service rejects the token: no request  → a new one\n  ✗ channel stream is stopped for ',
      '  → a new token starts it\n  ! a  [31mred  name: with lines  → do it\n',
      'channels\n',
      'queues\n  deliveries pending  7\n',
      'handlers\n',
      'throughput  22 facts, 33 delivered, 1 failed attempt, 1 call since 2026-11-2',
      'something new\n  a  1\n',
      'routes  1 of 2 found',
    ].map(at)
    expect(order).toEqual(order.toSorted((a, b) => a - b))
    expect(out).not.toMatch(/\d{13}|\/v1\/x/)
    const { out: verbose } = await cli(['status', '--verbose', '--url', url])
    expect(verbose).toMatch(/ {2}answer +POST +\/v1\/x +document/)
    expect(JSON.parse((await cli(['status', '--json', '--url', url])).out)).toEqual(status)
  })

  test('shows that nothing needs attention, and lists what discovery missed', async () => {
    const status = {
      needs_action: [{ function: 'lookup', calls: 2, oldest_at: AT, advice: 'add `lookup` under `tools`' }],
      discovery: [
        {
          name: 'single turn',
          found: 'GET /v1/turn',
          without: 'turns are read from the list',
          override: 'a',
        },
        { name: 'idempotency header', found: null, without: 'a POST is read for first', override: 'b' },
      ],
    }
    const { url } = await adminApi({
      'GET /api/status': () => status,
      'GET /api/handlers': list([]),
      'GET /api/attention': () => ({ object: 'list', data: [] }),
    })
    const { out } = await cli(['status', '--url', url])
    expect(out).toMatch(/^needs attention\n {2}none\nchannels\n/)
    expect(out).not.toContain('needs action')
    expect(out).toMatch(
      /discovery {2}1 of 2 found .*\n +name +without +override\n +idempotency header +a POST/,
    )
    expect(out).not.toContain('/v1/turn')
    expect((await cli(['status', '--verbose', '--url', url])).out).toMatch(/single turn +GET \/v1\/turn/)
  })
})

describe('a sidecar that cannot be asked', () => {
  test('because it is not running is reported with the fix', async () => {
    const { code, err } = await cli(['status', '--url', 'http://127.0.0.1:9'])
    expect({ code, err }).toEqual({
      code: 1,
      err: 'error: no sidecar answers at http://127.0.0.1:9\n  fix: start one with "session-sidecar run -c FILE", or give its address with --url\n',
    })
  })

  test('is reported differently for a missing token and a missing route', async () => {
    const { url } = await adminApi({})
    expect((await cli(['handlers', 'pause', 'unknown', '--url', url])).err).toBe(
      `error: ${url}/api/handlers/unknown/pause answered 404: no /api/handlers/unknown/pause here\n`,
    )
  })

  test('is reported in a sentence if another program listens there', async () => {
    const server = createServer((socket) => socket.end('SSH-2.0-x\r\n')).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const { code, err } = await cli(['status', '--url', `http://127.0.0.1:${port}`])
    server.close()
    expect(code).toBe(1)
    expect(err).toMatch(/^error: cannot reach http.*\n {2}fix: give the address of admin\.listen.*\n$/)
  })
})

describe('the admin token', () => {
  test('that is wrong has another message than one that is missing', async () => {
    await using running = await listen((_request, response) =>
      response.writeHead(401, { 'content-type': 'application/problem+json' }).end('{"detail":"required"}'),
    )
    const missing = await cli(['status', '--url', running.url])
    expect(missing.err).toBe(
      `error: ${running.url} requires its admin token (required)\n  fix: set SIDECAR_ADMIN_TOKEN, or give --token-file or -c\n`,
    )
    const wrong = await cli(['status', '--url', running.url], { SIDECAR_ADMIN_TOKEN: 'wrong' })
    expect(wrong.err).toBe(
      `error: ${running.url} refuses the admin token (required)\n  fix: give the admin.token of that sidecar in SIDECAR_ADMIN_TOKEN, or by --token-file or -c\n`,
    )
  })

  test('comes from a file, the environment, or the configuration, as the address does', async () => {
    const { url, asked } = await adminApi({ 'GET /api/status': () => ({ version: 'x' }) })
    const folder = await folderWith({
      token: 'from-file\n',
      'sidecar.yaml': `service: { base_url: "https://a.b", token: "\${NOT_SET_HERE}" }\nadmin: { listen: "${new URL(url).host}", token: from-config }`,
    })
    const results = await Promise.all([
      cli(['status', '--json', '--url', url, '--token-file', `${folder}/token`], {
        SIDECAR_ADMIN_TOKEN: 'from-env',
      }),
      cli(['status', '--json', '--url', url], { SIDECAR_ADMIN_TOKEN: 'from-env' }),
      cli(['status', '--json', '--url', url], { SIDECAR_ADMIN_TOKEN_FILE: `${folder}/token` }),
      cli(['status', '--json', '-c', `${folder}/sidecar.yaml`]),
    ])
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0])
    expect(
      asked.map(({ authorization }) => authorization ?? '').toSorted((a, b) => a.localeCompare(b)),
    ).toEqual(['Bearer from-config', 'Bearer from-env', 'Bearer from-file', 'Bearer from-file'])
  })

  test('is refused where it cannot be sent, with the place that holds it', async () => {
    const folder = await folderWith({ two: 'one\ntwo\n' })
    const url = 'http://127.0.0.1:9'
    const [file, variable] = await Promise.all([
      cli(['status', '--url', url, '--token-file', `${folder}/two`]),
      cli(['status', '--url', url], { SIDECAR_ADMIN_TOKEN: 'one\ntwo' }),
    ])
    expect([file?.code, variable?.code]).toEqual([2, 2])
    expect(file?.err).toBe(`error: ${folder}/two does not contain exactly one token\n`)
    expect(variable?.err).toBe('error: SIDECAR_ADMIN_TOKEN does not contain exactly one token\n')
  })
})
