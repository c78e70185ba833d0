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
})
