import { describe, expect, it } from 'vitest'
import { PROFILES } from '../emulator/support.ts'
import { FULL } from '../support/full.ts'
import { belongings, differences, emulator, idsIn, QUICK, run } from './support.ts'
import { fields, proxyOf } from './proxy.ts'

describe.each(PROFILES)('an emulator with open details %s', (openDetails) => {
  it('follows every rule that can be tried, and is unchanged afterwards', async () => {
    const service = await emulator({ openDetails })
    const before = await belongings(service)
    const report = await run({ baseUrl: service.baseUrl, token: service.token, write: true, only: QUICK })
    expect(differences(report)).toEqual([])
    expect(report.verdicts.map(({ id }) => id)).toEqual([...QUICK])
    expect(report.verdicts.filter(({ note }) => note?.includes('worth a report'))).toEqual([])
    expect(idsIn(report, 'holds').length).toBeGreaterThanOrEqual(590)
    expect(idsIn(report, 'open').length).toBeGreaterThanOrEqual(45)
    expect(report.verdicts.filter(({ state, note }) => state === 'not tried' && note === null)).toEqual([])
    expect(report).toMatchObject({ left: [], ended: null })
    expect(report.sessions.most).toBeLessThanOrEqual(12)
    expect(await belongings(service)).toEqual(before)
  })

  it('is only read without --write', async () => {
    const service = await emulator({ openDetails })
    const headers = { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ title: 'mine', metadata: { whose: 'mine' } })
    for (let count = 0; count < 3; count++) {
      const reply = await fetch(`${service.baseUrl}/v1/sessions`, { method: 'POST', headers, body })
      expect(reply.status).toBe(201)
    }
    const truth = () => ({ ...service.ledger(), now: 0 })
    const before = truth()
    const proxy = await proxyOf(service.baseUrl, {})
    const report = await run({ baseUrl: proxy.baseUrl, token: service.token, only: QUICK })
    expect(truth()).toEqual(before)
    expect(differences(report)).toEqual([])
    expect(idsIn(report, 'holds').length).toBeGreaterThanOrEqual(150)
    expect(proxy.seen.length).toBeGreaterThan(100)
    expect(proxy.seen.filter(({ method, status }) => method !== 'GET' && status < 400)).toEqual([])
  })
})

describe.runIf(FULL)('an agent that does not follow its instructions', () => {
  it.each(['say No.', 'hang', 'fail for good', 'shell true'])(
    'causes no deviation with "%s"',
    async (line) => {
      const service = await emulator()
      const proxy = await proxyOf(service.baseUrl, {
        ask: ({ path, body }) => {
          if (path.endsWith('/input')) fields(body)['text'] = line
        },
      })
      const settings = { token: service.token, write: true, only: QUICK, patience: 400 }
      const report = await run({ baseUrl: proxy.baseUrl, ...settings })
      expect(differences(report)).toEqual([])
      expect(idsIn(report, 'holds').length).toBeGreaterThan(350)
      expect(report.left).toEqual([])
    },
  )
})

describe('a token with fewer scopes', () => {
  it('skips what its token may not do, and shows that it is refused', async () => {
    const service = await emulator()
    const { token } = service.mintToken(['sessions:read'])
    const report = await run({ baseUrl: service.baseUrl, token, write: true, only: QUICK })
    expect(differences(report)).toEqual([])
    expect(idsIn(report, 'holds')).toContain('ERR-18')
    expect(report.verdicts.find(({ id }) => id === 'SES-65')?.note).toBe('the token lacks sessions:write')
    expect(report.sessions.made).toBe(0)
  })

  it('with a cli token shows that everything is refused', async () => {
    const service = await emulator()
    const { token } = service.mintToken(['cli'])
    const report = await run({ baseUrl: service.baseUrl, token, only: QUICK })
    expect(differences(report)).toEqual([])
    expect(idsIn(report, 'holds')).toEqual(expect.arrayContaining(['AUT-12', 'AUT-13', 'AUT-14', 'ERR-19']))
  })
})
