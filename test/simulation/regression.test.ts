import { expect, it } from 'vitest'
import { REGRESSIONS, replay } from './regressions.ts'

// Undoing the fix of nearly each is one of the planted bugs (mutants/found.ts); this alone shows the others.
it.each(REGRESSIONS)('$name', async (regression) => {
  const { violation, missed } = await replay(regression)
  expect(violation).toBeNull()
  expect(missed).toEqual([])
})
