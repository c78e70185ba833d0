import { describe, expect, it } from 'vitest'
import { parseJson } from '../../src/core/json.ts'

describe('JSON', () => {
  it('keeps every digit of a number that a double cannot hold', () => {
    const text = '{"a":12345678901234567890,"b":[-9007199254740993,0.12345678901234567891]}'
    expect(JSON.stringify(parseJson(text))).toBe(text)
  })

  it('has numbers that are only spelled otherwise as numbers, whatever stands beside them', () => {
    const text = '{"card":"4111111111111111","price":2.50,"whole":1763701200123.0,"big":1e3,"none":-0.0}'
    expect(parseJson(text)).toEqual({
      card: '4111111111111111',
      price: 2.5,
      whole: 1_763_701_200_123,
      big: 1000,
      none: -0,
    })
  })

  it.each([
    ['[10000000000000001,20000000000000000000]', '[10000000000000001,20000000000000000000]'],
    ['[-0.00012345678901234567,100000000000000000000000]', '[-0.00012345678901234567,1e+23]'],
    ['[1.2345678901234567e10,0.0000000000000000]', '[1.2345678901234567e10,0]'],
  ])('counts the digits of %s that say something', (text, kept) => {
    expect(JSON.stringify(parseJson(text))).toBe(kept)
  })

  it('reads a number of 200,000 digits at once, wherever its zeros stand', () => {
    const began = performance.now()
    for (const digits of [`1${'0'.repeat(200_000)}1`, '10'.repeat(100_000), `0.${'0'.repeat(200_000)}1`]) {
      expect(JSON.stringify(parseJson(`[${digits}]`)).length).toBeLessThan(200_005)
    }
    // Looking at each zero as the possible end took half a minute.
    expect(performance.now() - began).toBeLessThan(5000)
  })
})
