import { expect, it } from 'vitest'
import { BoundedMap } from '../../src/std/bounded-map.ts'

it('keeps the last keys that were set, and at most twice as many', () => {
  const map = new BoundedMap<number, string>(3)
  for (let key = 1; key <= 100; key++) {
    map.set(key, `of ${key}`)
    const kept = Array.from({ length: key }, (_, index) => index + 1).filter(
      (one) => map.get(one) !== undefined,
    )
    expect(kept.length).toBeLessThanOrEqual(6)
    expect(kept.slice(-3)).toEqual([key - 2, key - 1, key].filter((one) => one > 0))
  }
})

it('has the newest value of a key, and none once it is deleted', () => {
  const map = new BoundedMap<string, number>(2)
  for (const key of ['a', 'b', 'c', 'a']) map.set(key, 1)
  map.set('a', 2)
  expect(map.get('a')).toBe(2)
  map.delete('a')
  expect(map.get('a')).toBeUndefined()
})
