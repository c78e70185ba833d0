import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig } from '../../src/sidecar/config/load.ts'
import { folderWith } from '../config/folder.ts'
import { cli, start } from './process.ts'

const URLS = ['--base-url', 'https://agents.example.com', '--handler-url', 'http://127.0.0.1:3000/events']

test('writes a configuration that loads, and a secret that only its owner may read', async () => {
  const folder = await folderWith({ token: 'svc_pat_x' })
  const file = path.join(folder, 'new/sidecar.yaml')
  const init = (tool: string) =>
    start(['init', 'new/sidecar.yaml', ...URLS, '--token-file', 'token', '--tool', tool], { cwd: folder })
      .ended
  const { code, out, err } = await init('look up')
  expect({ code, out, err }).toMatchObject({ code: 2, out: '' })
  expect(err).toContain('tools[0].name')
  const good = await init('lookup')
  expect({ code: good.code, err: good.err }).toEqual({ code: 0, err: '' })
  expect(good.out).toContain('session-sidecar check -c new/sidecar.yaml')
  const { config, warnings } = await loadConfig(file, {})
  expect(warnings).toEqual([])
  const secret = await readFile(path.join(folder, 'new/callback-secret.txt'), 'utf8')
  expect(config.service).toMatchObject({ baseUrl: 'https://agents.example.com', token: 'svc_pat_x' })
  expect(config.handlers[0]?.target).toEqual({
    kind: 'http',
    url: 'http://127.0.0.1:3000/events',
    secrets: [secret.trim()],
  })
  expect(config.tools[0]?.target).toMatchObject({ url: 'http://127.0.0.1:3000/tools/lookup' })
  expect((await stat(path.join(folder, 'new/callback-secret.txt'))).mode & 0o777).toBe(0o600)
  const comments = (await readFile(file, 'utf8')).match(/^ *#/gm) ?? []
  expect(comments.length).toBeGreaterThan(10)
})

test('refuses a second tool, because it writes one', async () => {
  const folder = await folderWith({})
  const { code, err } = await start(['init', ...URLS, '--tool', 'a', '--tool', 'b'], { cwd: folder }).ended
  expect(code).toBe(2)
  expect(err).toContain(
    "option '--tool <name>' does not accept 'b'. It may be given once, and 'a' was given already.",
  )
  expect(existsSync(path.join(folder, 'sidecar.yaml'))).toBe(false)
})

test('prints the written files for programs', async () => {
  const folder = await folderWith({})
  const file = path.join(folder, 'sidecar.yaml')
  const { code, out } = await cli(['init', file, ...URLS, '--json'])
  expect(code).toBe(0)
  const secret = path.join(folder, 'callback-secret.txt')
  expect(JSON.parse(out)).toEqual({ config: file, secret_file: secret, secret_kept: false })
  expect((await stat(secret)).mode & 0o777).toBe(0o600)
})

test('overwrites neither a configuration nor a secret', async () => {
  const folder = await folderWith({ 'sidecar.yaml': 'mine', 'callback-secret.txt': 'whsec_bWluZQ==' })
  const file = path.join(folder, 'sidecar.yaml')
  const { code, err } = await cli(['init', file, ...URLS])
  expect({ code, err }).toEqual({
    code: 2,
    err: `error: ${file} exists already and was not changed\n  fix: name another file\n`,
  })
  expect(await readFile(file, 'utf8')).toBe('mine')
  const other = await cli(['init', path.join(folder, 'other.yaml'), ...URLS])
  expect(other.out).toContain(`kept ${path.join(folder, 'callback-secret.txt')}`)
  expect(await readFile(path.join(folder, 'callback-secret.txt'), 'utf8')).toBe('whsec_bWluZQ==')
})

test('refuses an invalid existing secret, and does not expand text that looks like a variable', async () => {
  const folder = await folderWith({ 'callback-secret.txt': 'change-me!' })
  const { code, err } = await cli(['init', path.join(folder, 'sidecar.yaml'), ...URLS])
  expect(code).toBe(2)
  expect(err).toContain('callback-secret.txt must be a Standard Webhooks secret')
  expect(existsSync(path.join(folder, 'sidecar.yaml'))).toBe(false)
  const file = path.join(await folderWith({}), 'sidecar.yaml')
  const url = 'http://127.0.0.1:3000/${TENANT}'
  await cli(['init', file, '--base-url', 'https://agents.example.com', '--handler-url', url])
  const { config } = await loadConfig(file, { SERVICE_TOKEN: 'svc_pat_y' })
  expect(config.handlers[0]?.target).toMatchObject({ url: 'http://127.0.0.1:3000/${TENANT}' })
})

test('without a terminal says which option is missing, and writes nothing', async () => {
  const folder = await folderWith({})
  const file = path.join(folder, 'sidecar.yaml')
  const { code, err } = await cli(['init', file])
  expect(code).toBe(2)
  expect(err).toContain('add --base-url')
  await expect(readFile(file)).rejects.toThrow('ENOENT')
})

const there = spawnSync('script', ['--version']).status === 0
if (!there) process.stderr.write('init: there is no script(1) here, its questions are NOT tried\n')

/** Runs `init` on a terminal on which a person has typed this. */
async function typed(folder: string, text: string): Promise<string> {
  const main = path.resolve(import.meta.dirname, '../../src/main.js')
  const child = spawn('script', ['-qec', `${process.execPath} ${main} init`, '/dev/null'], {
    cwd: folder,
    // What is read here is the words: a terminal would have them coloured.
    env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0' },
  })
  let shown = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    if (shown === '') child.stdin.write(text)
    shown += chunk
  })
  await new Promise((resolve) => child.once('close', resolve))
  return shown
}

describe.skipIf(!there)('on a terminal', () => {
  test('asks for what no option gave, and uses the default for an empty answer', async () => {
    const folder = await folderWith({})
    const shown = await typed(folder, 'https://agents.example.com\n\n\nrefund\n')
    expect(shown).toContain(
      'Address where your app receives callbacks [http://127.0.0.1:3000/agent-events]: ',
    )
    expect(shown).toContain('export SERVICE_TOKEN=')
    const { config } = await loadConfig(path.join(folder, 'sidecar.yaml'), { SERVICE_TOKEN: 'svc_pat_y' })
    expect(config.service).toMatchObject({ baseUrl: 'https://agents.example.com', token: 'svc_pat_y' })
    expect(config.tools.map(({ name }) => name)).toEqual(['refund'])
    expect(config.handlers[0]?.target).toMatchObject({ url: 'http://127.0.0.1:3000/agent-events' })
  })

  test('asks again for an address that cannot be used', async () => {
    const folder = await folderWith({})
    const shown = await typed(
      folder,
      '\nagents\nhttps://agents.example.com/v1\nhttps://agents.example.com\n\n3000\n\n\n',
    )
    expect(shown).toContain('it is needed')
    expect(shown).toContain('agents must be an http or https address')
    expect(shown).toContain('/v1 must be the address without /v1: the sidecar adds it')
    expect(shown).toContain('3000 must be an http or https address')
    const { config } = await loadConfig(path.join(folder, 'sidecar.yaml'), { SERVICE_TOKEN: 'svc_pat_y' })
    expect(config.service.baseUrl).toBe('https://agents.example.com')
    expect(config.handlers[0]?.target).toMatchObject({ url: 'http://127.0.0.1:3000/agent-events' })
  })

  test.each([
    ['Ctrl-C', '\u0003'],
    ['Ctrl-D', '\u0004'],
  ])('ended with %s writes nothing', async (_key, key) => {
    const folder = await folderWith({})
    const shown = await typed(folder, `https://agents.example.com\n${key}`)
    expect(shown).toContain('error: the input ended before the question was answered: nothing was written')
    expect(shown).not.toContain('    at ')
    await expect(readFile(path.join(folder, 'sidecar.yaml'))).rejects.toThrow('ENOENT')
  })
})
