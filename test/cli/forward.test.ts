import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import path from 'node:path'
import { request } from 'undici'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { verifyCallback } from '../../src/index.ts'
import { folderWith } from '../config/folder.ts'
import { freePort, listen, type Listening } from '../support/listen.ts'
import { FULL } from '../support/full.ts'
import { until } from '../support/until.ts'
import { start, type Running } from './process.ts'

/** What one's own app was sent. */
interface Got {
  path: string
  headers: IncomingHttpHeaders
  body: string
  type: string
  session_id: string
}

let folder: string
const got: Got[] = []
/** What the app answers: a status by path, else 200. */
let statuses: Record<string, number> = {}
const running: Running[] = []
const open: Listening[] = []

beforeEach(async () => {
  folder = await folderWith({})
  got.length = 0
  statuses = {}
})

afterEach(async () => {
  for (const one of running.splice(0)) {
    one.process.kill('SIGKILL')
    await one.ended
  }
  for (const one of open.splice(0)) await one[Symbol.asyncDispose]()
})

async function ownApp(port = 0): Promise<Listening> {
  const app = await listen((asked, response) => {
    void asked.toArray().then((chunks: Buffer[]) => {
      const body = Buffer.concat(chunks).toString()
      const { type, session_id } = JSON.parse(body) as { type: string; session_id: string }
      got.push({ path: asked.url ?? '', headers: asked.headers, body, type, session_id })
      const status = statuses[asked.url ?? ''] ?? 200
      response.writeHead(status).end(status === 200 ? '{"state":"shipped"}' : 'not today')
    })
  }, port)
  open.push(app)
  return app
}

function run(args: readonly string[], env: Record<string, string> = {}): Running {
  const one = start(args, {
    cwd: folder,
    env: { XDG_CONFIG_HOME: folder, SIDECAR_ADMIN__LISTEN: '127.0.0.1:0', ...env },
  })
  running.push(one)
  return one
}

async function says(one: Running, text: string | RegExp): Promise<void> {
  await expect.poll(() => one.out + one.err).toMatch(text)
}

async function interrupt(one: Running): Promise<number | null> {
  one.process.kill('SIGINT')
  return (await one.ended).code
}

const CALL = 'call lookup_order {"order_id":"42"}'

describe('dev --forward-to', () => {
  test('sends callbacks and function calls to the user’s app, signed with a stored secret', async () => {
    const { url } = await ownApp()
    const send = ['dev', '--forward-to', `${url}/agent-events`, '--once', '--send', CALL]
    const { code, out } = await run(send).ended
    expect(out).toMatch(/✓ (\d+) of \1 facts delivered\n/)
    expect(out).toContain('✓ 1 of 1 function call answered\n')
    expect(code).toBe(0)
    expect(out).toContain(`POST ${url}/agent-events`)
    expect(out).toContain(`POST ${url}/tools/NAME`)
    expect(out).toMatch(/^\d\d:\d\d:\d\d +callback +turn\.settled +[0-9a-f]{8} +app 200 +(\d+ ms|[\d.]+ s)$/m)
    expect(out).toMatch(
      /tool +lookup_order +[0-9a-f]{8} +answered +(\d+ ms|[\d.]+ s) +\{"state":"shipped"\}$/m,
    )
    expect(new Set(got.map(({ path: at }) => at))).toEqual(new Set(['/agent-events', '/tools/lookup_order']))

    const file = path.join(folder, 'agent-session-sidecar/callback-secret.txt')
    const secret = (await readFile(file, 'utf8')).trim()
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(out).toContain(file)
    expect(out).toContain(`export CALLBACK_SECRET=${secret}\n`)
    for (const { path: at, headers, body } of got)
      if (at === '/agent-events') verifyCallback({ headers, body, secrets: [secret] })
    expect((await run(send).ended).out).toContain(`export CALLBACK_SECRET=${secret}\n`)
  })

  test.runIf(FULL)('shows a console on IPv6 with an address that a browser can open', async () => {
    const { url } = await ownApp()
    const one = run(['dev', '--forward-to', url], { SIDECAR_ADMIN__LISTEN: '[::1]:0' })
    await says(one, /http:\/\/\[::1\]:\d+/)
    expect(await interrupt(one)).toBe(0)
  })

  test.runIf(FULL)('reports that the port of the service is in use', async () => {
    const { url } = await ownApp()
    const first = run(['dev', '--forward-to', url])
    await says(first, /service +http:\/\/127\.0\.0\.1:\d+/)
    const second = run(['dev', '--forward-to', url], {
      SIDECAR_ADMIN__LISTEN: `127.0.0.1:${await freePort()}`,
    })
    await says(
      second,
      /Port 4010 is in use by another program, so the service has the port that is shown above/,
    )
    expect(second.out).toMatch(/service +http:\/\/127\.0\.0\.1:(?!4010)\d+/)
    expect(await interrupt(second)).toBe(0)
  })

  test('prints a line that verifies a request, in Node and in Python', async () => {
    const { url } = await ownApp()
    const { out } = await run(['dev', '--forward-to', url, '--once', '--send', CALL]).ended
    const [first] = got
    const call = got.find(({ type }) => type === 'tool.call')
    if (first === undefined || call === undefined) throw new Error('no callback or no call')
    const [, secret = ''] = /export CALLBACK_SECRET=(\S+)/.exec(out) ?? []
    const line = (language: string): string => new RegExp(`# ${language}\n +(.*)`).exec(out)?.[1] ?? ''
    await writeFile(path.join(folder, 'body'), first.body)
    const outcome = (program: string, args: string[], given: string): string => {
      const { stdout, stderr } = spawnSync(program, args, {
        cwd: folder,
        env: { ...process.env, CALLBACK_SECRET: given },
      })
      return `${stdout.toString()}${stderr.toString()}`.trim()
    }
    const verifying = (headers: string): string => `import { readFileSync } from 'node:fs'
      function handle(request, body) {
        ${line('Node')}
        return genuine
      }
      console.log(handle({ headers: ${headers} }, readFileSync('body')))`
    const headers = JSON.stringify(first.headers)
    const node = verifying(headers)
    const other = `whsec_${Buffer.alloc(32).toString('base64')}`
    expect(outcome(process.execPath, ['--input-type=module', '-e', node], secret)).toBe('true')
    expect(outcome(process.execPath, ['--input-type=module', '-e', node], other)).toBe('false')
    const unsigned = verifying('{}')
    expect(outcome(process.execPath, ['--input-type=module', '-e', unsigned], secret)).toBe('false')
    await writeFile(path.join(folder, 'body'), call.body)
    const ofCall = verifying(JSON.stringify(call.headers))
    expect(outcome(process.execPath, ['--input-type=module', '-e', ofCall], secret)).toBe('true')
    await writeFile(path.join(folder, 'body'), first.body)
    const signed = {
      ...first.headers,
      'webhook-signature': `v1,AAAA ${String(first.headers['webhook-signature'])}`,
    }
    expect(
      outcome(process.execPath, ['--input-type=module', '-e', verifying(JSON.stringify(signed))], secret),
    ).toBe('true')
    if (spawnSync('python3', ['--version']).status !== 0) return
    const inPython = (given: object): string =>
      `def handle(headers, body):\n  ${line('Python')}\n  return genuine\nprint(handle(${JSON.stringify(given)}, open('body', 'rb').read()))`
    const python = inPython(first.headers)
    expect(outcome('python3', ['-c', inPython(signed)], secret)).toBe('True')
    expect(outcome('python3', ['-c', inPython({})], secret)).toBe('False')
    expect(outcome('python3', ['-c', python], secret)).toBe('True')
    expect(outcome('python3', ['-c', python], other)).toBe('False')
  })

  test('says why the app refuses a request, how to fix it, and what follows', async () => {
    const { url } = await ownApp()
    statuses = { '/': 401, '/tools/lookup_order': 404 }
    const one = run(['dev', '--forward-to', url, '--events', 'turn.*', '--send', CALL])
    await says(
      one,
      /callback +turn\.started +\S+ +app 401 .* attempt 1, again in \d+ \S+ with the same id, not today/,
    )
    await says(
      one,
      /! your app refuses the signature \(401\)\n +fix: give it the secret in \S+callback-secret\.txt/,
    )
    await says(one, /tool +lookup_order +\S+ +app 404 .* attempt 1, again with the same idempotency-key/)
    await says(
      one,
      /! your app has no route POST \/tools\/lookup_order \(404\)\n +fix: add the route, or name another one: --tool lookup_order=URL/,
    )
    statuses = { '/': 500 }
    await says(one, /! your app failed \(500\)\n +fix: read the output of your app; the request is repeated/)
    statuses = {}
    await says(one, /callback +turn\.started +\S+ +app 200/)
    await says(one, /tool +lookup_order +\S+ +answered/)
    expect(one.out.match(/refuses the signature/g)).toHaveLength(1)
    const ids = got.filter(({ type }) => type === 'turn.started').map(({ headers }) => headers['webhook-id'])
    expect(ids.length).toBeGreaterThan(1)
    expect(new Set(ids).size).toBe(1)
    expect(await interrupt(one)).toBe(0)
  })

  test.runIf(FULL)('waits for an app that does not listen, and says so once', async () => {
    const port = await freePort()
    const one = run(['dev', '--forward-to', String(port), '--send', CALL])
    await says(one, `! no program listens at http://localhost:${port}\n    fix: start your app`)
    await ownApp(port)
    await says(one, /callback +turn\.settled +\S+ +app 200/)
    expect(one.out.match(/no program listens/g)).toHaveLength(1)
    expect(await interrupt(one)).toBe(0)
  })

  test.each([
    [
      'https://localhost:PORT',
      /! no TLS connection to https:\/\/localhost:\d+: wrong version number\n +fix: use http:\/\//,
    ],
    [
      'http://no-such-host.invalid',
      /! the host of http:\/\/no-such-host\.invalid is unknown\n +fix: correct the address/,
    ],
    [
      'http://localhost:PORT/cut',
      /! your app closes the connection before it answers\n +fix: read the output of your app/,
    ],
    [
      'http://localhost:PORT/gone',
      /! your app answered 410, so it gets no more callbacks\n +fix: resume them: session-sidecar handlers resume app --url http:\/\/127\.0\.0\.1:\d+\n/,
    ],
    [
      'http://localhost:PORT/moved',
      /! http:\/\/localhost:\d+\/moved is redirected \(302\)\n +fix: use the address/,
    ],
  ])('says what is wrong with %s', async (address, expected) => {
    const app = await listen((asked, response) => {
      if (asked.url === '/cut') asked.socket.destroy()
      else response.writeHead(asked.url === '/gone' ? 410 : 302).end()
    })
    open.push(app)
    const to = address.replace('PORT', String(app.port))
    const one = run(['dev', '--forward-to', to, '--events', 'turn.settled', '--send', 'say Hello'])
    await says(one, expected)
    expect(one.out.match(/ fix: /g)).toHaveLength(1)
    expect(await interrupt(one)).toBe(0)
  })

  test.runIf(FULL)('sends the calls of one function elsewhere', async () => {
    const [{ url }, orders] = [await ownApp(), await ownApp()]
    const tool = `lookup_order=${orders.url.replace('http://', '')}/orders`
    const args = [
      'dev',
      '--forward-to',
      url,
      '--tool',
      tool,
      '--once',
      '--send',
      `${CALL} & call check_stock {}`,
    ]
    const { code, out } = await run(args).ended
    expect(out).toContain('✓ 2 of 2 function calls answered')
    expect(code).toBe(0)
    const calls = got.filter(({ type }) => type === 'tool.call').map(({ path: at }) => at)
    expect(calls.toSorted()).toEqual(['/orders', '/tools/check_stock'])
  })

  test('plays a scenario again when its file changes, and reports a faulty one', async () => {
    const { url } = await ownApp()
    const file = path.join(folder, 'mine.yaml')
    const scenario = (message: string): string =>
      `name: mine\nsessions:\n  - title: Mine\n    messages: [hello]\nreplies:\n  - when: hello\n    steps: [${message}]\n`
    await writeFile(file, scenario('say One'))
    const one = run(['dev', '--forward-to', url, '--scenario', 'mine.yaml', '--watch'])
    const said = (text: string): boolean =>
      got.some(({ type, body }) => type === 'agent.message' && body.includes(text))
    await until('the first reply', () => said('One'))
    await writeFile(file, 'name: mine\nsesions: []\n')
    await says(one, /mine\.yaml:2: sesions: unknown key, did you mean "sessions"\?/)
    await writeFile(file, scenario('say Two'))
    await until('the second reply', () => said('Two'))
    expect(new Set(got.map(({ session_id: id }) => id)).size).toBe(2)
    expect(await interrupt(one)).toBe(0)
  })

  test.runIf(FULL)('prints lines of JSON for programs', async () => {
    const { url } = await ownApp()
    const { code, out, err } = await run(['dev', '--forward-to', url, '--once', '--json', '--send', CALL])
      .ended
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines[0]).toMatchObject({ kind: 'started', app: `${url}/`, token: 'svc_pat_dev' })
    expect(out).not.toContain('whsec_')
    expect(lines).toContainEqual(
      expect.objectContaining({ kind: 'callback', type: 'turn.settled', status: 200 }),
    )
    expect(lines.at(-1)).toMatchObject({
      kind: 'summary',
      complete: true,
      missing: [],
      calls: { asked: 1, answered: 1 },
    })
  })
})

describe('listen', () => {
  async function service(): Promise<string> {
    const emulator = run(['emulate', '--listen', '127.0.0.1:0', '--json'])
    await says(emulator, /\n$/)
    await writeFile(path.join(folder, 'token'), 'svc_pat_dev\n')
    return (JSON.parse(emulator.out) as { address: string }).address
  }

  async function createSession(base: string, text: string): Promise<string> {
    const { body } = await request(`${base}/v1/sessions`, {
      method: 'POST',
      headers: { authorization: 'Bearer svc_pat_dev', 'content-type': 'application/json' },
      body: JSON.stringify({ title: 'x', input: { text } }),
    })
    return ((await body.json()) as { id: string }).id
  }

  /** The token's file, unless the environment names it. */
  const listenTo = (base: string, ...more: string[]): string[] => [
    'listen',
    '--base-url',
    base,
    '--token-file',
    'token',
    ...more,
  ]

  test('forwards what happens from now on, and leaves nothing behind', async () => {
    const [base, { url }] = [await service(), await ownApp()]
    const before = await createSession(base, 'say Before')
    const headers = { authorization: 'Bearer svc_pat_dev' }
    await until('the end of the first turn', async () => {
      const { body } = await request(`${base}/v1/sessions/${before}`, { headers })
      return ((await body.json()) as { status: string }).status === 'idle'
    })
    const one = run(listenTo(base, '--forward-to', url))
    await says(one, /The store is in \S+ and is removed at the end/)
    const [, temporary = ''] = /The store is in (\S+)/.exec(one.out) ?? []
    expect(existsSync(temporary)).toBe(true)
    const after = await createSession(base, CALL)
    await says(one, /callback +call\.answered +\S+ +app 200/)
    await says(one, /callback +turn\.settled +\S+ +app 200/)
    expect(got.some(({ path: at, type }) => at === '/tools/lookup_order' && type === 'tool.call')).toBe(true)
    expect(
      new Set(got.filter(({ type }) => type.startsWith('turn.')).map(({ session_id: id }) => id)),
    ).toEqual(new Set([after]))
    expect(await interrupt(one)).toBe(0)
    expect(existsSync(temporary)).toBe(false)
  })

  test.runIf(FULL)(
    'takes what run takes from the environment, and leaves function calls to others',
    async () => {
      const [base, { url }] = [await service(), await ownApp()]
      const one = run(['listen', '--forward-to', url, '--no-tools'], {
        SIDECAR_SERVICE__BASE_URL: base,
        SIDECAR_SERVICE__TOKEN: 'svc_pat_dev',
        SIDECAR_HANDLERS__0__EVENTS: '["action.*"]',
      })
      await says(one, 'removed at the end')
      await createSession(base, CALL)
      await says(one, /callback +action\.required/)
      expect(got.map(({ type }) => type)).toEqual(['action.required'])
      expect(await interrupt(one)).toBe(0)
    },
  )

  test.runIf(FULL)('ends with cause and fix when the service cannot be used', async () => {
    const base = await service()
    await writeFile(path.join(folder, 'wrong'), 'svc_pat_wrong')
    const closed = await freePort()
    const app = ['--forward-to', '3000']
    for (const [args, code, cause, fix] of [
      [
        ['listen', '--base-url', base, '--token-file', 'wrong', ...app],
        3,
        'the service rejects the token',
        'create one in the Console of the service, and put it into wrong',
      ],
      [
        listenTo(`http://127.0.0.1:${closed}`, ...app),
        1,
        `http://127.0.0.1:${closed} is unreachable: connect ECONNREFUSED`,
        'correct --base-url',
      ],
      [
        listenTo(base.replace('http:', 'https:'), ...app),
        1,
        'is unreachable: wrong version number',
        'use http:// if the server has no TLS',
      ],
      [
        listenTo('http://no-such-host.invalid', ...app),
        1,
        'is unreachable: getaddrinfo',
        'correct --base-url',
      ],
      [
        ['listen', '--token-file', 'token', ...app],
        2,
        'the address of the service is missing',
        'add --base-url https://',
      ],
      [
        ['listen', '--base-url', base, ...app],
        2,
        'the token of the service is missing',
        'add --token-file FILE',
      ],
    ] as const) {
      const { err, out, code: ended } = await run([...args]).ended
      expect({ args, ended, out }).toEqual({ args, ended: code, out: '' })
      const [first = '', second = '', ...rest] = err.split('\n')
      expect(first).toMatch(/^error: /)
      expect(first).toContain(cause)
      expect(second).toContain(`  fix: ${fix}`)
      expect(rest).toEqual([''])
    }
  })
})
