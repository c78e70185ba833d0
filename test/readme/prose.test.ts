import { globSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { read, ROOT } from './document.ts'
import { cellsOf, CELL_MOST, SENTENCE_MOST, sentencesOf, wordsOf } from './prose.ts'

/** Lists that are generated from the source, and the rules of the service in its own words. */
const GENERATED =
  /^(src\/protocol\/rules|test\/contract\/COVERAGE|test\/catalogue\/FAULTS|test\/simulation\/mutants\/TABLE)\.md$/
/** Number of sentences and cells that are too long. It only shrinks. */
const ALLOWED: Readonly<Record<string, number>> = {}

const exclude = ['**/node_modules', 'dist', '.package']
const documents = globSync('{*,config/**/*,src/**/*,test/**/*,.github/*}.md', { cwd: ROOT, exclude })
  .filter((document) => !GENERATED.test(document))
  .toSorted()

describe('the prose of every document', () => {
  test('is read', () => {
    expect(documents).toEqual(expect.arrayContaining(['README.md', 'CHANGELOG.md', 'config/README.md']))
    const text =
      '# No\n\nOne [two](three.md) `four five`. Next\none!\n\n- a\n- b\n\n| h | i |\n|---|---|\n| x \\| y | z |\n'
    expect(sentencesOf(text).map((sentence) => [sentence, wordsOf(sentence)])).toEqual([
      ['One two CODE.', 3],
      ['Next one!', 2],
      ['- a', 1],
      ['- b', 1],
      ['h', 1],
      ['i', 1],
      ['x \\| y', 2],
      ['z', 1],
    ])
  })

  test.each(documents)('%s: no sentence and no cell has to be read twice', (document) => {
    const text = read(document)
    const sentences = sentencesOf(text).filter((sentence) => wordsOf(sentence) > SENTENCE_MOST)
    const cells = cellsOf(text)
      .flat()
      .filter((cell) => cell.length > CELL_MOST)
    const found = [...sentences, ...cells]
    expect(found.slice(ALLOWED[document] ?? 0)).toEqual([])
    expect(found.length).toBe(ALLOWED[document] ?? 0)
  })
})

test('README.md is the front door: 350 lines at most', () => {
  expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(350)
})
