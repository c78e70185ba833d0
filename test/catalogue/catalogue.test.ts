import { describe, expect, it } from 'vitest'
import { proofsOfRepository, readProofs, renderTable, tableOfRepository } from './catalogue.ts'
import { FAULTS } from './faults.ts'

describe('the catalogue of faults', () => {
  const proofs = proofsOfRepository()

  it('names a test for every fault', () => {
    const proved = new Set(proofs.flatMap(({ ids }) => ids))
    expect(FAULTS.filter(({ id }) => !proved.has(id))).toEqual([])
  })

  it('has every fault that a test names', () => {
    const known = new Set(FAULTS.map(({ id }) => id))
    expect(proofs.flatMap(({ ids }) => ids.filter((id) => !known.has(id)))).toEqual([])
  })

  it('is current; npm run coverage:faults renews it', () => {
    expect(tableOfRepository() === renderTable(FAULTS, proofs)).toBe(true)
  })
})

describe('the reading of tags', () => {
  it('finds the title below a tag, whatever the test is made of', () => {
    const text = [
      `  // [fault stream-1] [fault tool-2]`,
      `  it('it\\'s one', async () => {})`,
      `  // [fault stream-3]`,
      `  test.each([['x', f(1)]] as const)(`,
      `    "refuses %s",`,
      `  )`,
      `  it('has no tag', () => {})`,
    ].join('\n')
    expect(readProofs('x.test.ts', text)).toEqual([
      { file: 'x.test.ts', title: "it's one", ids: ['stream-1', 'tool-2'] },
      { file: 'x.test.ts', title: 'refuses %s', ids: ['stream-3'] },
    ])
  })

  it('refuses a tag with no test below it', () => {
    expect(() => readProofs('x.test.ts', '// [fault stream-1]\nconst one = 1\n')).toThrow('no test follows')
  })

  it('shows a fault that has no test', () => {
    const [fault] = FAULTS.slice(0, 1)
    expect(renderTable(fault === undefined ? [] : [fault], [])).toContain('| **none** |')
  })
})
