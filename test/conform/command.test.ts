import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Report } from '../../src/conform/run.ts'
import { cli, start } from '../cli/process.ts'
import { proxyOf } from './proxy.ts'
import { belongings, emulator, hanging, reached } from './support.ts'

async function tokenFile(token: string): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'conform-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = path.join(folder, 'token')
  await writeFile(file, `${token}\n`)
  return file
}

describe('session-sidecar conform', () => {
  it('prints the result of each rule, and why a rule was not tried', async () => {
    const service = await emulator()
    const target = ['--base-url', service.baseUrl, '--token-file', await tokenFile(service.token)]
    const { code, out, err } = await cli(['conform', ...target, '--only', 'HLT,SES-65,GEN-32'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const lines = out.split('\n')
    expect(lines).toContain('HLT-03 holds      `version` is `v1`.')
    expect(lines).toContain('GEN-32 open       The name of the idempotency header. → Idempotency-Key')
    expect(lines).toContain('not tried         needs --write (1)')
    expect(lines).toContain('                  SES-65')
    expect(out).toMatch(/\n16 hold, 0 differ, 1 open, 2 not tried: http:\S+, \d+ requests in [\d.]+ s\n$/)
  })

  it('prints what differs, with the request to repeat and without the token, and exits with 1', async () => {
    const service = await emulator()
    const proxy = await proxyOf(service.baseUrl, {
      ask: ({ query }) => {
        if (query.get('limit') === '101') query.set('limit', '100')
      },
    })
    const target = ['--base-url', proxy.baseUrl, '--token-file', await tokenFile(service.token)]
    const { code, out } = await cli(['conform', ...target, '--only', 'ERR-09', '--verbose'])
    expect(code).toBe(1)
    expect(out).toContain('ERR-09 differs    A `limit` above 100 gives 400 `invalid_request`.')
    expect(out).toMatch(/expected +400 invalid_request\n +seen +200 /)
    expect(out).toContain(`curl -i '${proxy.baseUrl}/v1/`)
    expect(out).toContain('"authorization: Bearer $TOKEN"')
    expect(out).not.toContain(service.token)
  })

  it('prints one JSON document for programs', async () => {
    const service = await emulator()
    const target = ['--base-url', `${service.baseUrl}/`, '--token-file', await tokenFile(service.token)]
    const { code, out } = await cli([
      'conform',
      ...target,
      '--only',
      'SES-93..95,MOD-22',
      '--write',
      '--json',
    ])
    expect(code).toBe(0)
    const report = JSON.parse(out) as Report & { counts: object }
    expect(report).toMatchObject({
      deployment: service.baseUrl,
      counts: { holds: 4, differs: 0, open: 0, 'not tried': 0 },
      ended: null,
      left: [],
    })
    expect(report.verdicts.map(({ id, state }) => [id, state])).toEqual([
      ['SES-93', 'holds'],
      ['SES-94', 'holds'],
      ['SES-95', 'holds'],
      ['MOD-22', 'holds'],
    ])
  })

  it('receives webhook deliveries of a deployment on this machine', async () => {
    const service = await emulator()
    const target = ['--base-url', service.baseUrl, '--token-file', await tokenFile(service.token)]
    const { code, out } = await cli(['conform', ...target, '--only', 'WHS-26..30', '--write'])
    expect(code).toBe(0)
    expect(out).toContain('5 hold, 0 differ')
  })

  it('removes what it made when it is interrupted', async () => {
    const service = await emulator()
    const before = await belongings(service)
    const proxy = await proxyOf(service.baseUrl, hanging)
    const target = ['--base-url', proxy.baseUrl, '--token-file', await tokenFile(service.token)]
    const running = start(['conform', ...target, '--write'])
    await reached(service, 2, 1)
    running.process.kill('SIGINT')
    const { code, out } = await running.ended
    expect(code).toBe(1)
    expect(out).toContain('the run was interrupted: the remaining rules were not tried')
    expect(await belongings(service)).toEqual(before)
  })

  it.each([
    [['--token-file', 'x'], "option '--base-url' is required"],
    [['--base-url', 'http://127.0.0.1:9'], "option '--token-file' is required"],
    [['--base-url', 'ftp://x', '--token-file', 'x'], '"ftp://x" is not an http or https address'],
    [['--base-url', 'http://127.0.0.1:9', '--token-file', '/nowhere/token'], '--token-file:'],
    [['--base-url', 'http://127.0.0.1:9', '--token-file', 'x', '--only', 'ABC'], 'ABC is not a rule'],
    [['--base-url', 'http://127.0.0.1:9', '--token-file', 'x', '--parallel', '0'], 'from 1 to 16'],
    [
      ['--base-url', 'http://127.0.0.1:9', '--token-file', 'x', '--timeout', 'soon'],
      'A duration such as 90s',
    ],
  ])('exits with 2 on %j', async (args, message) => {
    const { code, err } = await cli(['conform', ...args])
    expect(code).toBe(2)
    expect(err).toContain(message)
  })

  it('exits with 3 when the token is rejected, and with 1 when the deployment is unreachable', async () => {
    const service = await emulator()
    const file = await tokenFile('svc_pat_wrong')
    const rejected = await cli(['conform', '--base-url', service.baseUrl, '--token-file', file])
    expect(rejected).toMatchObject({ code: 3, out: '' })
    expect(rejected.err).toContain('rejected the token')
    const unreachable = await cli(['conform', '--base-url', 'http://127.0.0.1:9', '--token-file', file])
    expect(unreachable).toMatchObject({ code: 1, out: '' })
    expect(unreachable.err).toContain('cannot be tested')
    expect(unreachable.err).not.toContain('    at ')
  })
})
