import { describe, expect, it } from 'vitest'
import { idsOf, select } from '../../src/conform/catalogue.ts'
import { proxyOf } from './proxy.ts'
import { READING } from './reading-deviations.ts'
import { belongings, emulator, idsIn, QUICK, run } from './support.ts'
import { WRITING } from './writing-deviations.ts'

describe('without --write, conform sees that', () => {
  it.each(READING)('$name', { timeout: 30_000 }, async ({ breaks, ...change }) => {
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
    expect(JSON.stringify(first?.difference?.curl)).not.toContain(service.token)
  })
})

describe('with --write, conform sees that', () => {
  it.each(WRITING)('$name', { timeout: 30_000 }, async ({ breaks, only = '', ...change }) => {
    const service = await emulator()
    const before = await belongings(service)
    const proxy = await proxyOf(service.baseUrl, change)
    const settings = { baseUrl: proxy.baseUrl, token: service.token, write: true, only: select(only) }
    const report = await run({ ...settings, patience: 2000 })
    expect(idsIn(report, 'differs').sort()).toEqual(idsOf(breaks).sort())
    expect(report.left).toEqual([])
    expect(await belongings(service)).toEqual(before)
  })
})
