import { expect, test } from 'vitest'
import { isBefore, isWhole } from '../../src/core/seq.ts'

test('a seq is compared by its digits, also above 2^53', () => {
  const ascending = [
    '0',
    '1',
    '9',
    '10',
    '99',
    '9007199254740992',
    '9007199254740993',
    '10000000000000000000',
  ]
  for (const [index, seq] of ascending.entries())
    expect(ascending.map((other) => isBefore(seq, other))).toEqual(ascending.map((_, at) => index < at))
})

test('a seq is digits and nothing else, at most forty', () => {
  const given = ['7', '007', '9'.repeat(40), '', '-1', '1.5', ' 1', 'x', '9'.repeat(41)]
  expect(given.map(isWhole)).toEqual([true, true, true, false, false, false, false, false, false])
})

test('texts without a number have a consistent order', () => {
  const ascending = ['', 'a', 'b', '7:a', '7:b']
  for (const [index, text] of ascending.entries())
    expect(ascending.map((other) => isBefore(text, other))).toEqual(ascending.map((_, at) => index < at))
})
