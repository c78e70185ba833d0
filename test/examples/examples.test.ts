import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { group, ROOT, type Block } from '../readme/document.ts'
import { Story } from '../readme/story.ts'
import { FULL, RELEASE } from '../support/full.ts'

const EXAMPLES = path.join(ROOT, 'config/examples')
/** Not in what a reader's install of our package makes. */
const INSTALLED = ['standardwebhooks', 'express', 'fastify', '@opentelemetry']

/** A folder with these files of the examples and nothing else. */
async function begin(...files: string[]): Promise<Story> {
  const story = await Story.begin()
  onTestFinished(() => story.end().then(() => undefined))
  for (const name of INSTALLED)
    await symlink(path.join(ROOT, 'node_modules', name), path.join(story.folder, 'node_modules', name))
  for (const file of files) {
    await story.play(fileBlock(path.basename(file), readFileSync(path.join(EXAMPLES, file), 'utf8')))
  }
  return story
}

function fileBlock(name: string, text: string): Block {
  return { language: 'text', line: 1, words: [], text, value: (word) => (word === 'file' ? name : null) }
}

function has(...command: [program: string, ...words: string[]]): boolean {
  const [program, ...words] = command
  const there = spawnSync(program, words).status === 0
  if (!there)
    process.stderr.write(`examples: "${command.join(' ')}" fails here, what needs it is NOT tried\n`)
  return there
}

/** What comes before the stream is open is in no log of the sidecar's. */
const STREAM_OPEN = `until curl -s http://127.0.0.1:8481/api/status | grep -q '"stream":{"state":"live"'; do sleep 0.1; done`

const shell = has('curl', '--version') && has('openssl', 'version')
const python = has('python3', '-c', 'import http.server')
const fastapi = has('python3', '-c', 'import fastapi, uvicorn')
const go = has('go', 'version')
/** Each language does the same. */
const others = FULL && shell
const express = existsSync(path.join(ROOT, 'node_modules/express'))

/**
 * The commands of an example's page, as they are in the story's folder: everything lies in one folder there, and the program
 * is this repository's.
 */
function commandsOf(name: string): string[] {
  const page = readFileSync(path.join(EXAMPLES, name, 'README.md'), 'utf8')
  const [, block = ''] = /^```sh\n(.*?)^```$/ms.exec(page) ?? []
  return block
    .trimEnd()
    .split('\n')
    .map((line) =>
      line
        .replace('cp ../sidecar.yaml . && ', '')
        .replace('../curl/', '')
        .replace(/^npm --prefix \.\.\/\.\.\/\.\. start --|^npx session-sidecar/, 'npm start --')
        // `go run` starts the app as a child, which a signal to `go` does not end.
        .replace(/^go run main.go$/, "sh -c 'go build -o app main.go && exec ./app'"),
    )
}

/** Has the app serve a session that calls its tool, and a handler's work after it. */
async function serves(story: Story, session: string | undefined): Promise<void> {
  await story.run(STREAM_OPEN)
  const { code, out } = await story.run(session ?? 'exit 1')
  expect(code).toBe(0)
  expect(out.split('\n')).toEqual(expect.arrayContaining(['event: tool.required', 'event: turn.ended']))
  await story.says('lookup_order 42 for the first time\nturn.settled completed Order 42')
}

test.for([
  { name: 'node', file: 'app.mjs', possible: shell },
  { name: 'standardwebhooks', file: 'app.mjs', possible: others },
  { name: 'express', file: 'app.mjs', possible: others && express },
  { name: 'fastify', file: 'app.mjs', possible: others },
  { name: 'python', file: 'app.py', possible: others && python },
  { name: 'fastapi', file: 'app.py', possible: others && fastapi },
  { name: 'go', file: 'main.go', possible: others && go },
])(
  '$name takes callbacks and runs a tool, and believes only what is signed',
  async ({ name, file, possible }, { skip }) => {
    skip(!possible, FULL ? 'a program is missing' : 'npm run test:full')
    const story = await begin(`${name}/${file}`, 'sidecar.yaml', 'curl/session.sh', 'curl/callback.sh')
    const [secret = '', emulate = '', app = '', sidecar = '', session] = commandsOf(name)
    expect((await story.run(secret)).code).toBe(0)
    await story.start(emulate, '4010')
    await story.start(app, '3000')
    await story.start(sidecar, '8481')
    await serves(story, session)
    expect((await story.run('sh callback.sh')).out).toBe('204\n')
    await story.says('turn.settled completed From a shell')
    const forged = await story.run(`sed -i 's/.$/x/' secret.txt; sh callback.sh`)
    expect(forged.out).toBe('401\n')
  },
)

/** Its check of signatures runs everywhere: what FastAPI gives is replaced, and the clock stands at the public example. */
const FASTAPI = `
import sys, time
from unittest.mock import MagicMock
sys.modules["fastapi"] = MagicMock()
secret, id, timestamp, signature, body = sys.argv[1:]
with open("secret.txt", "w") as file:
    file.write(secret)
time.time = lambda: int(timestamp)
from app import is_genuine
signed = {"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature}
print(is_genuine(signed, body.encode()), is_genuine(signed, b"{}"), is_genuine({}, body.encode()))
`

test.skipIf(!python)('fastapi/app.py compiles, and accepts only the public example', async () => {
  const story = await begin('fastapi/app.py')
  const { secret, id, at, signature, body } = VECTOR
  const { stdout, stderr } = spawnSync('python3', ['-c', FASTAPI, secret, id, at, signature, body], {
    cwd: story.folder,
    encoding: 'utf8',
  })
  expect([stdout, stderr]).toEqual(['True False False\n', ''])
})

test.skipIf(!shell)('typescript/app.ts does the same with functions', async () => {
  const story = await begin('typescript/app.ts', 'curl/session.sh')
  const [emulate = '', app = '', session] = commandsOf('typescript')
  await story.start(emulate, '4010')
  await story.start(app, '8481')
  await serves(story, session)
  expect(await story.end()).toEqual([0, 0])
})

test.skipIf(!shell)('tracing/app.ts shows what the sidecar does', async () => {
  const story = await begin('tracing/app.ts', 'curl/session.sh')
  const [emulate = '', app = '', session = ''] = commandsOf('tracing')
  await story.start(emulate, '4010')
  await story.start(app, '8481')
  expect((await story.run(session)).code).toBe(0)
  await story.says('span tool lookup_order\nspan answer lookup_order\nspan callback -\nspan reading -')
})

/** The example of the Standard Webhooks specification. */
const VECTOR = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  at: '1614265330',
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}

test.for([
  { file: 'verify.mjs', words: ['node'], version: '--version' },
  { file: 'verify.py', words: ['python3'], version: '--version' },
  { file: 'verify.go', words: ['go', 'run'], version: 'version' },
  { file: 'Verify.java', words: ['java'], version: '-version' },
  { file: 'verify.rb', words: ['ruby'], version: '--version' },
  { file: 'verify.php', words: ['php'], version: '--version' },
  { file: 'Verify.cs', words: ['dotnet', 'run'], version: '--version' },
])('verify/$file accepts the public example and nothing near it', ({ file, words, version }, { skip }) => {
  const [program = '', ...before] = words
  skip(!FULL && program !== 'node', 'npm run test:full')
  skip(!has(program, version), 'a program is missing')
  const verdict = (changes: Partial<typeof VECTOR> & { now?: string } = {}): string => {
    const { secret, id, at, body, signature, now = VECTOR.at } = { ...VECTOR, ...changes }
    const args = [...before, path.join(EXAMPLES, 'verify', file), secret, id, at, signature, now]
    const { stdout, stderr } = spawnSync(program, args, { input: body, encoding: 'utf8' })
    return stdout.trim() || stderr
  }
  expect(verdict()).toBe('genuine')
  expect(verdict({ signature: `v1,AAAA ${VECTOR.signature}`, now: String(Number(VECTOR.at) + 300) })).toBe(
    'genuine',
  )
  const forged = [
    { body: '{"test":2432232314}' },
    { now: String(Number(VECTOR.at) + 301) },
    { id: 'msg_other' },
    { at: String(Number(VECTOR.at) + 1) },
    { signature: 'v1,' },
    { now: String(Number(VECTOR.at) - 301) },
  ]
  // Some compile the file each time, for a second.
  const tried = RELEASE || program === 'node' ? forged : forged.slice(0, 2)
  expect(tried.map(verdict)).toEqual(tried.map(() => 'forged'))
})

test('the example on the page of verify is the public one', () => {
  const page = readFileSync(path.join(EXAMPLES, 'verify/README.md'), 'utf8')
  const [, block = ''] = /^```sh\n(.*?)^```$/ms.exec(page) ?? []
  const { stdout } = spawnSync('sh', ['-c', block.replaceAll('body.json', '"$BODY"')], {
    cwd: path.join(EXAMPLES, 'verify'),
    env: {
      PATH: `${path.dirname(process.execPath)}:${process.env['PATH']}`,
      BODY: path.join(tmpdir(), `verify-${process.pid}.json`),
    },
    encoding: 'utf8',
  })
  expect(stdout).toBe('genuine\n')
})

test('every example is in the list of examples and has its own page', () => {
  const list = readFileSync(path.join(EXAMPLES, 'README.md'), 'utf8')
  const folders = readdirSync(EXAMPLES, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  expect(folders.length).toBeGreaterThan(5)
  for (const { name } of folders) {
    expect(list).toContain(`[${name}](${name}/)`)
    expect(readdirSync(path.join(EXAMPLES, name))).toContain('README.md')
  }
})

test('src/sidecar/README.md leads to a reader of the relay', async () => {
  const story = await Story.begin()
  onTestFinished(() => story.end().then(() => undefined))
  const said: string[] = []
  for (const block of group('relay')) {
    if (block.words.includes('run')) said.push((await story.run(block.text)).out)
    else await story.play(block)
  }
  const [shown] = group('relay').filter(({ words }) => words.includes('shows'))
  expect(said).toEqual(['', shown?.text])
})
