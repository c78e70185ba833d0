import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import { RULES, select } from '../../src/conform/catalogue.ts'
import { CHECKS } from '../../src/conform/checks.ts'
import { UNSEEN } from '../../src/conform/unseen.ts'
import { WATCHED } from '../../src/conform/watch.ts'

const ROW = /^\|\s*([A-Z]{3}-\d+)\s*\|\s*(.*?)\s*\|\s*(o?)\s*\|$/gm

describe('the rules that come with the program', () => {
  it('are those of the rule list, word by word', () => {
    const text = readFileSync(path.join(import.meta.dirname, '../../src/protocol/rules.md'), 'utf8')
    const listed = [...text.matchAll(ROW)].map(([, id, rule, open]) => ({
      id,
      text: rule,
      open: open === 'o',
    }))
    expect(listed.length).toBeGreaterThan(800)
    expect(RULES).toEqual(listed)
  })

  it('each have a check, or a reason why there is none, never both', () => {
    const tried = new Set([...CHECKS.flatMap(({ ids }) => ids), ...WATCHED])
    const left = UNSEEN.flatMap(([, ids]) => ids)
    expect(RULES.map(({ id }) => id).filter((id) => !tried.has(id) && !left.includes(id))).toEqual([])
    expect(left.filter((id) => tried.has(id))).toEqual([])
    expect(new Set(left).size).toBe(left.length)
  })

  it('are chosen by prefix, id and range', () => {
    expect(select('HLT').size).toBe(17)
    expect([...select('LIM-09, GEN-01..03')]).toEqual(['LIM-09', 'GEN-01', 'GEN-02', 'GEN-03'])
    expect(() => select('LIM-09 ABC')).toThrow('ABC is not a rule')
    expect(() => select(' ')).toThrow('no rule is named')
  })

  it('have checks with titles of their own', () => {
    const titles = CHECKS.map(({ title }) => title)
    expect(new Set(titles).size).toBe(titles.length)
  })
})
