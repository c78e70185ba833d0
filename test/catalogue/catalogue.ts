import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FAULTS, type Fault } from './faults.ts'

/** A test that says above itself which faults it proves: `// [fault stream-7] [fault stream-8]`. */
export interface Proof {
  /** Below `test`. */
  file: string
  title: string
  ids: string[]
}

const TESTS = join(import.meta.dirname, '..')
const TABLE = join(import.meta.dirname, 'FAULTS.md')

const TAGS = /^ *\/\/((?: \[fault [a-z]+-\d+\])+)$/gm
/** A test, from its first word to its title. */
const TEST =
  /^\s*(?:it|test)(?:\.\w+(?:\([^]*?\))??)*\(\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)"|`((?:\\.|[^`\\])*)`)/

/** @throws {Error} for a tag with no test below it. */
export function readProofs(file: string, text: string): Proof[] {
  return [...text.matchAll(TAGS)].map(({ index, 0: line, 1: tags = '' }) => {
    const [, single, double, template] = TEST.exec(text.slice(index + line.length)) ?? []
    const title = single ?? double ?? template
    if (title === undefined) throw new Error(`${file}: no test follows${tags}`)
    const ids = [...tags.matchAll(/\[fault ([a-z]+-\d+)\]/g)].flatMap(([, id]) => id ?? [])
    return { file, title: title.replaceAll(/\\(.)/g, '$1'), ids }
  })
}

export function proofsOfRepository(): Proof[] {
  return readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.test.ts') && !name.startsWith('catalogue/catalogue'))
    .toSorted()
    .flatMap((name) => readProofs(name, readFileSync(join(TESTS, name), 'utf8')))
}

export function tableOfRepository(): string {
  return readFileSync(TABLE, 'utf8')
}

/** Every fault and the tests that prove what follows from it, in Markdown. */
export function renderTable(faults: readonly Fault[], proofs: readonly Proof[]): string {
  const rows = faults.map(({ id, fault, mustFollow }) => {
    const tests = proofs
      .filter(({ ids }) => ids.includes(id))
      .map(({ file, title }) => `${file}: ${cell(title)}`)
    const shown = tests.length === 0 ? '**none**' : tests.join('<br>')
    return `| ${id} | ${cell(fault)} | ${cell(mustFollow)} | ${shown} |`
  })
  return `# Every fault of the catalogue, and the tests of what must follow from it

Written by \`npm run coverage:faults\` from \`faults.ts\` and the tags of the tests; not to be edited. It
lists the tests that inject one of these faults on purpose. The simulation and the torture test inject most of them at random.

| id | fault | must follow | tests |
|---|---|---|---|
${rows.join('\n')}
`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ')
}

if (import.meta.main) writeFileSync(TABLE, renderTable(FAULTS, proofsOfRepository()))
