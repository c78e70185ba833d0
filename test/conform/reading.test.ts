import { describe, expect, it } from 'vitest'
import { idsOf } from '../../src/conform/catalogue.ts'
import { some } from '../support/full.ts'
import { proxyOf } from './proxy.ts'
import { READING } from './reading-deviations.ts'
import { emulator, idsIn, QUICK, run } from './support.ts'

describe('without --write, conform sees that', () => {
  it.each(some(READING))('$name', async ({ breaks, ...change }) => {
    const service = await emulator()
    const headers = { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' }
    const post = (path: string, body: object) =>
      fetch(`${service.baseUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    for (let count = 0; count < 3; count++)
      expect((await post('/v1/sessions', { title: 'mine' })).status).toBe(201)
    expect((await post('/v1/webhooks', { url: 'https://mine.invalid' })).status).toBe(201)
    const proxy = await proxyOf(service.baseUrl, change)
    const report = await run({ baseUrl: proxy.baseUrl, token: service.token, only: QUICK })
    expect(idsIn(report, 'differs').sort()).toEqual(idsOf(breaks).sort())
    const [first] = report.verdicts.filter(({ state }) => state === 'differs')
    expect(first?.difference?.curl).toContain(proxy.baseUrl)
    expect(JSON.stringify(report)).not.toContain(service.token)
  })
})
