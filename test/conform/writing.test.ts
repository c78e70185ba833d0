import { describe, expect, it } from 'vitest'
import { idsOf, select } from '../../src/conform/catalogue.ts'
import { some } from '../support/full.ts'
import { proxyOf } from './proxy.ts'
import { belongings, emulator, idsIn, run } from './support.ts'
import { WRITING } from './writing-deviations.ts'

describe('with --write, conform sees that', () => {
  it.each(some(WRITING))('$name', async ({ breaks, only = '', ...change }) => {
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
