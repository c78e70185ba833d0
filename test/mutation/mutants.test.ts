import { expect, test } from 'vitest'
import { mutantsOf } from './mutants.ts'

const changesOf = (source: string) => mutantsOf(source).map(({ from, to }) => `${from} → ${to || 'nothing'}`)

test.each([
  ["const a = b === 'c'", ['=== → !==', "'c' → ''"]],
  ['if (a < b && !c) return true', ['< → <=', '&& → ||', '! → nothing', 'true → false']],
  ['const wait = 1_000 + a * 2', ['+ → -', '* → /', '1_000 → 1001', '2 → 3']],
  ['{\n  facts.push(fact)\n  n += 1\n}', ['facts.push(fact) → nothing', 'n += 1 → nothing', '1 → 2']],
])('every change of %j is made once', (source, changes) => {
  expect(changesOf(source).toSorted()).toEqual(changes.toSorted())
})

test.each([
  "// 'a' === 1",
  "/** true && 'a' */",
  "import { a } from './a.ts'",
  "interface A {\n  b: 'c'\n}\n\n",
  "type A = 'b' | 'c'\n\n",
  "let a: 'b' | 'c' | 'd'",
  "function a(b: Pick<C, 'd'>): Omit<E, 'f'> {}",
  "const a = ''",
  'const a = `${b} === 1`',
  'const a = /1 && 2/',
])('nothing of %j is changed: it is a comment, a type or a pattern', (source) => {
  expect(changesOf(source)).toEqual([])
})

test('a change says its line, and is in the source once', () => {
  expect(mutantsOf("const a = 1\nconst b = 'c'\n")).toEqual([
    { line: 1, from: '1', to: '2', text: "const a = 2\nconst b = 'c'\n" },
    { line: 2, from: "'c'", to: "''", text: "const a = 1\nconst b = ''\n" },
  ])
})
