import { expect, test } from 'vitest'
import { retryAfter } from '../../src/std/retry-after.ts'

/** Friday, 21 November 2025, 05:20 GMT. */
const NOW = 1_763_702_400_000
const DAY = 86_400_000

test.each([
  [undefined, null],
  ['', null],
  ['0', 0],
  ['1', 1000],
  [' 1.5 ', 1500],
  ['0.0001', 1],
  ['120', 120_000],
  ['86400', DAY],
  ['86401', DAY],
  ['9999999999', DAY],
  ['9'.repeat(400), DAY],
  ['-5', null],
  ['1e9', null],
  ['soon', null],
  ['in 2030', null],
  ['Friday', null],
  ['Fri, 21 Nov 2025 05:20:30 GMT', 30_000],
  ['Friday, 21-Nov-25 05:20:30 GMT', 30_000],
  ['Fri, 21 Nov 2025 05:19:30 GMT', 0],
  ['Sat, 22 Nov 2025 05:20:00 GMT', DAY],
  ['Sun, 23 Nov 2025 05:20:00 GMT', DAY],
])('a Retry-After of %j is %s ms', (header, wait) => {
  expect(retryAfter(header, NOW)).toBe(wait)
})
