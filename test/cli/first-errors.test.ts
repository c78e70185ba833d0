import { writeFile } from 'node:fs/promises'
import { afterEach, expect, test } from 'vitest'
import { folderWith } from '../config/folder.ts'
import { listen } from '../support/listen.ts'
import { start, type Ended, type Running } from './process.ts'

/**
 * The errors that a new user meets first, each caused on purpose: what is wrong, how to fix it, and the exit code. Those of
 * the user's own app and of `listen` are in forward.test.ts.
 */

const running: Running[] = []

afterEach(async () => {
  for (const one of running.splice(0)) {
    one.process.kill('SIGKILL')
    await one.ended
  }
})

const CONFIG =
  'service: { base_url: "http://127.0.0.1:9", token: svc_pat_x }\nadmin: { listen: "127.0.0.1:0" }\n'

async function run(
  args: string[],
  files: Record<string, string> = {},
  env = {},
): Promise<Ended & { cwd: string }> {
  const cwd = await folderWith({ 'sidecar.yaml': CONFIG, ...files })
  const one = start(args, { cwd, env })
  running.push(one)
  return { ...(await one.ended), cwd }
}

/** The lines for people: without the first line of dev, and without the log. */
function linesOf({ err }: Ended): string[] {
  return err
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('{') && !line.startsWith('Starting '))
}

test.each([
  [
    'a scenario that is missing',
    ['dev', '--scenario', 'nope.yaml'],
    2,
    ['error: nope.yaml does not exist', '  fix: correct the path'],
  ],
  [
    'a scenario with a mistake',
    ['emulate', '--scenario', 'bad.yaml'],
    2,
    [
      'error: bad.yaml:2: sesions: unknown key, did you mean "sessions"?',
      '  fix: compare it with config/scenarios/example.yaml',
    ],
  ],
  [
    'a store in a folder that cannot be written',
    ['run'],
    2,
    [
      'error: store: cannot open /proc/x/sidecar.db',
      '  fix: put the store into a folder that this user may write to',
    ],
  ],
  ['an unknown command', ['lisen'], 2, ["error: unknown command 'lisen'", 'fix: use listen']],
  [
    'an unknown option',
    ['dev', '--forwardto', '3000'],
    2,
    ["error: unknown option '--forwardto'", 'fix: use --forward-to'],
  ],
  [
    'an option that needs another one',
    ['dev', '--send', 'Hello'],
    2,
    ["error: option '--send' needs --forward-to, the address of your app"],
  ],
  [
    'an invalid address',
    ['dev', '--forward-to', 'ftp://localhost'],
    2,
    [
      "error: option '--forward-to <url>' does not accept 'ftp://localhost'. The address of your app is expected, such as http://localhost:3000/agent-events or localhost:3000.",
    ],
  ],
  [
    'an address without a port, which is more likely a mistake',
    ['dev', '--forward-to', '3000', '--tool', 'weather=abc'],
    2,
    [
      "error: option '--tool <name=url>' does not accept 'weather=abc'. The address of your app is expected, such as http://localhost:3000/agent-events or localhost:3000.",
    ],
  ],
  [
    'a secret in a folder that cannot be written',
    ['dev', '--forward-to', '3000', '--secret-file', '/proc/x/secret'],
    2,
    [
      'error: the secret for callbacks cannot be kept in /proc/x/secret: ',
      '  fix: name another file: --secret-file FILE',
    ],
  ],
  [
    'an invalid secret',
    ['dev', '--forward-to', '3000', '--secret-file', 'bad.yaml'],
    2,
    ['error: the secret for callbacks cannot be kept in bad.yaml: a Standard Webhooks secret is "whsec_"'],
  ],
  [
    'a configuration in a folder that cannot be created',
    ['init', '/proc/x/y/sidecar.yaml', '--base-url', 'https://agents.example.com'],
    1,
    ['error: /proc/x does not exist', '  fix: correct the path'],
  ],
  [
    'a scenario that has nothing to run',
    ['dev', '--forward-to', '3000', '--once', '--scenario', 'empty.yaml'],
    1,
    ['error: empty.yaml has no sessions: there is nothing to run'],
  ],
  [
    'nothing to send',
    ['dev', '--forward-to', '3000', '--once'],
    2,
    [
      'error: --once ends when all messages are done, and no message is sent',
      '  fix: add --send TEXT or --scenario FILE',
    ],
  ],
  [
    'nothing to watch',
    ['dev', '--forward-to', '3000', '--watch'],
    2,
    ['error: --watch has no file to watch', '  fix: add --scenario FILE'],
  ],
] as const)('%s', async (_what, args, code, expected) => {
  const files = { 'bad.yaml': 'name: bad\nsesions: []\n', 'empty.yaml': 'name: empty\n' }
  const ended = await run([...args], files, {
    SIDECAR_STORE__URL: 'sqlite:/proc/x/sidecar.db',
    SIDECAR_LOG__FORMAT: 'json',
  })
  const lines = linesOf(ended)
  for (const [index, line] of expected.entries()) expect(lines[index]).toContain(line)
  expect(ended.code).toBe(code)
})

test('options that contradict each other are refused before anything starts', async () => {
  const ended = await run(['dev', '--forward-to', '3000', '--scenario', 'bad.yaml', '--once', '--watch'])
  expect(ended.err).toBe(
    'error: --once ends the command, and --watch continues it\n  fix: leave out --watch or --once\n',
  )
})

test('a file with the password for a copy that holds no password, or two', async () => {
  const stores = ['--from', 'sqlite:a.db', '--to', 'postgres://a@127.0.0.1:1/b']
  const copy = (file: string) => ['store', 'copy', ...stores, '--password-file', file]
  const missing = await run(copy('none'))
  expect([missing.code, missing.err]).toEqual([
    2,
    expect.stringMatching(/^error: --password-file: .*none does not exist\n/),
  ])
  const two = await run(copy('two'), { two: 'one\ntwo\n' })
  expect([two.code, two.err]).toEqual([
    2,
    'error: --password-file: two does not contain exactly one password\n',
  ])
})

test('a port that is in use', async () => {
  await using taken = await listen((_request, response) => response.end())
  const at = `127.0.0.1:${taken.port}`
  for (const [args, env] of [
    [['run'], { SIDECAR_ADMIN__LISTEN: at, SIDECAR_LOG__FORMAT: 'json' }],
    [['emulate', '--listen', at], {}],
  ] as const) {
    const ended = await run([...args], {}, env)
    const [cause, fix] = linesOf(ended)
    expect(cause).toBe(`error: ${at} is in use by another program`)
    expect(fix).toMatch(
      /^ {2}fix: stop that program, or use another port: emulate --listen, or admin\.listen/,
    )
    expect(ended.code).toBe(1)
  }
})

test('a token that the service rejects', async () => {
  await using service = await listen((_request, response) => {
    response
      .writeHead(401, { 'content-type': 'application/json' })
      .end('{"error":{"code":"unauthorized","message":"no"}}')
  })
  const ended = await run(
    ['run'],
    {},
    { SIDECAR_SERVICE__BASE_URL: service.url, SIDECAR_LOG__FORMAT: 'json' },
  )
  expect(linesOf(ended)).toEqual([
    'error: the service rejected the token (401)',
    '  fix: create a new one in the Console of the service, and give it in service.token or service.token_file',
  ])
  expect(ended.code).toBe(3)
})

test('a second sidecar on one store', async () => {
  const cwd = await folderWith({})
  await writeFile(`${cwd}/sidecar.yaml`, `${CONFIG}log: { format: json }\n`)
  const first = start(['run'], { cwd })
  running.push(first)
  await expect.poll(() => first.err).toContain('sidecar: started')
  const ended = await start(['run'], { cwd }).ended
  expect(linesOf(ended)).toEqual([
    `error: store: ${cwd}/data/sidecar.db is in use by another sidecar`,
    '  fix: stop it first, or use another store (store.url)',
  ])
  expect(ended.code).toBe(1)
})
