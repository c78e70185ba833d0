import { describe, expect, it } from 'vitest'
import {
  citationsOfRepository,
  readCitations,
  readRules,
  renderTable,
  rulesOfRepository,
  tableOfRepository,
} from './coverage.ts'

describe('the table of the contract', () => {
  const rules = rulesOfRepository()
  const citations = citationsOfRepository()

  it('has the whole list to go by, each id once', () => {
    expect(rules.length).toBeGreaterThan(790)
    expect(new Set(rules.map(({ id }) => id)).size).toBe(rules.length)
  })

  it('is current; npm run coverage:contract writes it anew', () => {
    expect(tableOfRepository() === renderTable(rules, citations)).toBe(true)
  })

  it('names a test for every rule', () => {
    const cited = new Set(citations.flatMap(({ ids }) => ids))
    expect(rules.filter(({ id }) => !cited.has(id)).map(({ id }) => id)).toEqual([])
  })

  it('knows every rule that a test cites', () => {
    const known = new Set(rules.map(({ id }) => id))
    const unknown = citations.flatMap(({ file, ids }) =>
      ids.filter((id) => !known.has(id)).map((id) => `${file} cites ${id}`),
    )
    expect(unknown).toEqual([])
  })

  it('names a test under both profiles for every rule that is left open', () => {
    const everywhere = new Set(citations.filter((one) => one.everyProfile).flatMap(({ ids }) => ids))
    const wanting = rules.filter(({ id, open }) => open && !everywhere.has(id))
    expect(wanting.map(({ id }) => id)).toEqual([])
  })
})

describe('the reading of tests', () => {
  // Not at the beginning of a line, where it would be taken for a test of this file.
  const source = [
    `describe.each(PROFILES)('profile %s', (profile) => {`,
    `  it('GEN-01 GEN-02 it\\'s one', async () => {})`,
    `  it.each([`,
    `    ['x', f(1)],`,
    `  ])(`,
    `    'ERR-05 refuses %s',`,
    `    async () => {},`,
    `  )`,
    `})`,
    ``,
    `describe('apart', () => {`,
    `  it("ERR-06 another", () => {})`,
    `  it('cites nothing, not even GEN-03', () => {})`,
    `  it.skip('GEN-04 is not run', () => {})`,
    `})`,
  ].join('\n')

  it('finds titles, the rules that they begin with, and whether they run under each profile', () => {
    expect(readCitations('x.test.ts', source)).toEqual([
      { file: 'x.test.ts', title: "it's one", ids: ['GEN-01', 'GEN-02'], everyProfile: true },
      { file: 'x.test.ts', title: 'refuses %s', ids: ['ERR-05'], everyProfile: true },
      { file: 'x.test.ts', title: 'another', ids: ['ERR-06'], everyProfile: false },
    ])
  })

  it('finds the rules and which of them are open, and shows what has no test', () => {
    const rules = readRules(
      ['| id | rule | open? |', '|---|---|---|', '| GEN-01 | One. |  |', '| GEN-32 | Two. | o |'].join('\n'),
    )
    expect(rules).toEqual([
      { id: 'GEN-01', text: 'One.', open: false },
      { id: 'GEN-32', text: 'Two.', open: true },
    ])
    const table = renderTable(rules, readCitations('x.test.ts', source))
    expect(table).toContain('| [GEN](#gen) | 2 | 1 | 1 | 1 |')
    expect(table).toContain("| GEN-01 | One. |  | x.test.ts `a b`: it's one |")
    expect(table).toContain('| GEN-32 | Two. | o | **none** |')
  })
})
