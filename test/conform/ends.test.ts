import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { RULES, select } from '../../src/conform/catalogue.ts'
import { freePort } from '../support/listen.ts'
import { proxyOf } from './proxy.ts'
import { belongings, emulator, hanging, idsIn, QUICK, reached, run } from './support.ts'

/** A server that is not the service. */
async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const HEALTH = { object: 'health', status: 'ok', version: 'v1', usable: true, missing_scopes: [] }
const SCOPES = ['sessions:read', 'sessions:write', 'tools:respond', 'artifacts:read', 'credentials:write']

describe('a run that ends early', () => {
  it('by an interrupt leaves nothing behind and lists the rules that were not checked', async () => {
    const service = await emulator()
    const before = await belongings(service)
    const proxy = await proxyOf(service.baseUrl, hanging)
    const interrupted = new AbortController()
    const settings = { token: service.token, write: true, patience: 40_000, signal: interrupted.signal }
    const running = run({ baseUrl: proxy.baseUrl, ...settings })
    await reached(service, 3, 1)
    interrupted.abort()
    const report = await running
    expect(report.ended).toBe('the run was interrupted')
    expect(report.left).toEqual([])
    expect(report.verdicts.length).toBe(RULES.length)
    expect(report.verdicts.some(({ note }) => note === 'the run was interrupted')).toBe(true)
    expect(await belongings(service)).toEqual(before)
  })

  it('by its time leaves nothing behind', async () => {
    const service = await emulator()
    const before = await belongings(service)
    const proxy = await proxyOf(service.baseUrl, hanging)
    const settings = { token: service.token, write: true, only: new Set(['TRN-02']) }
    const report = await run({ baseUrl: proxy.baseUrl, ...settings, timeout: 1500, patience: 20_000 })
    expect(report).toMatchObject({ ended: 'the 1.5 s of the run were over', left: [] })
    expect(report.sessions.made).toBe(1)
    expect(await belongings(service)).toEqual(before)
  })

  it('finds and removes a session of which the answer was lost', async () => {
    const service = await emulator()
    const before = await belongings(service)
    let lost = 0
    const proxy = await proxyOf(service.baseUrl, {
      answer: ({ method, path }, answer) => {
        if (method !== 'POST' || path !== '/v1/sessions' || answer.status !== 201 || lost > 3) return
        lost++
        Object.assign(answer, { status: 502, body: 'bad gateway' })
      },
    })
    const report = await run({
      baseUrl: proxy.baseUrl,
      token: service.token,
      write: true,
      only: select('SES TRN'),
      patience: 500,
    })
    expect(lost).toBe(4)
    expect(report.left).toEqual([])
    expect(await belongings(service)).toEqual(before)
  })

  it('lists what it could not remove', async () => {
    const service = await emulator()
    const proxy = await proxyOf(service.baseUrl, {
      ask: (asked) => {
        if (asked.method === 'DELETE' && asked.path.startsWith('/v1/sessions/'))
          asked.path = '/v1/nowhere/at/all'
      },
      answer: ({ path }, answer) => {
        if (path === '/v1/nowhere/at/all') answer.status = 503
      },
    })
    const only = new Set(['SES-93'])
    const report = await run({ baseUrl: proxy.baseUrl, token: service.token, write: true, only })
    expect(report.left).toEqual([
      expect.stringMatching(/^session [0-9a-f-]{36}$/),
      expect.stringMatching(/^session /),
    ])
  })
})

describe('an address without a service', () => {
  it('is named when it is unreachable', async () => {
    const baseUrl = `http://127.0.0.1:${await freePort()}`
    await expect(run({ baseUrl, token: 'svc_pat_unknown' })).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringMatching(
        /^http:.* cannot be tested: GET \/v1\/health got no answer: .*REFUSED.*--base-url$/,
      ),
    })
  })

  it('is named when it answers something else', async () => {
    const baseUrl = await serve((_request, response) => void response.end('<html></html>'))
    await expect(run({ baseUrl, token: 'svc_pat_unknown' })).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('does not answer as the service: GET /v1/health gave 200'),
    })
  })

  it('is named when it rejects the token', async () => {
    const service = await emulator()
    await expect(run({ baseUrl: service.baseUrl, token: 'svc_pat_wrong' })).rejects.toMatchObject({
      exitCode: 3,
    })
  })

  it('does not hold the run up when it never answers', async () => {
    const baseUrl = await serve(() => undefined)
    const began = performance.now()
    await expect(run({ baseUrl, token: 'svc_pat_unknown', timeout: 300 })).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringContaining('the 0.3 s of the run were over'),
    })
    // Far less than the patience with an agent.
    expect(performance.now() - began).toBeLessThan(15_000)
  })

  it('does not fill the memory with an answer that has no end', async () => {
    const baseUrl = await serve((_request, response) => {
      const piece = 'x'.repeat(1024 * 1024)
      const more = (): void => {
        while (!response.destroyed && response.write(piece));
      }
      response.on('drain', more)
      more()
    })
    await expect(run({ baseUrl, token: 'svc_pat_unknown' })).rejects.toThrow('does not answer as the service')
  })

  it('is reported separately when it stops during the run', async () => {
    let answers = 0
    const baseUrl = await serve((_request, response) => {
      answers++
      if (answers > 2) return void response.destroy()
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ ...HEALTH, scopes: SCOPES }))
    })
    await expect(run({ baseUrl, token: 'svc_pat_unknown' })).rejects.toMatchObject({
      exitCode: 1,
      message: expect.stringMatching(/stopped answering \(.*\); 5 requests failed in a row$/),
    })
  })

  it.each([
    ['null', null],
    ['numbers', [1, [2, [3]]]],
    ['lists of nothing', { object: 'list', data: [null, 1, 'a', []], has_more: 7, last_id: {} }],
    [
      'a description in circles',
      {
        paths: { '/v1/x': { get: { $ref: '#/paths/~1v1~1x/get' } } },
        components: { a: { $ref: '#/components/a' } },
      },
    ],
  ])('is judged to the end when it answers %s', async (_name, body) => {
    const baseUrl = await serve((request, response) => {
      const health = request.url === '/v1/health'
      const status = request.method === 'GET' ? 200 : 201
      request.resume().on('end', () => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(health ? { ...HEALTH, scopes: SCOPES } : body))
      })
    })
    const report = await run({
      baseUrl,
      token: 'svc_pat_unknown',
      write: true,
      only: QUICK,
      patience: 100,
      timeout: 15_000,
    })
    expect(report.verdicts.length).toBe(QUICK.size)
    expect(idsIn(report, 'differs').length).toBeGreaterThan(20)
    expect(report.verdicts.filter(({ note }) => note?.includes('worth a report'))).toEqual([])
  })
})
