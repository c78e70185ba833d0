import { describe, expect, it } from 'vitest'
import { MUTANTS } from './mutants/mutants.ts'
import { planted, readTable } from './mutants/table.ts'

/** Seeing them takes long: `npm run simulate -- --mutants`. */
describe('the planted bugs', () => {
  it.each(MUTANTS.map((mutant) => ({ mutant, name: mutant.name })))(
    'can still be planted: $name',
    async ({ mutant }) => {
      const texts = await planted(mutant)
      expect(texts.size).toBeGreaterThan(0)
    },
  )

  it('stand in the table, each once, and nothing else does', async () => {
    const names = MUTANTS.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect([...(await readTable()).keys()]).toEqual(names)
  })
})
