import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** One row of the rule list. */
export interface Rule {
  id: string
  text: string
  /** The interface leaves it open, so that each profile takes a side. */
  open: boolean
}

/** One test that begins its title with the ids of the rules that it proves. */
export interface Citation {
  /** Below `test`. */
  file: string
  /** Without the ids. */
  title: string
  ids: string[]
  /** It runs under each profile. */
  everyProfile: boolean
}

const HERE = import.meta.dirname
const TESTS = join(HERE, '..')
const TABLE = join(HERE, 'COVERAGE.md')
const RULES = join(TESTS, '../src/protocol/rules.md')

const ROW = /^\| ([A-Z]{3}-\d+) \| (.*) \| (o?) *\|$/
const SUITE = /^describe\.(?:each|for)\(PROFILES\)\([^]*?^\}\)$/gm
const TEST = /^ *it(?:\.(?:each|for))?\(/gm
/** What stands between `it(` or `it.each(` and the title. */
const TITLE =
  /^it(?:\.(?:each|for)\([^]*?\))?\(\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)"|`((?:\\.|[^`\\])*)`)/
const CITED = /^((?:[A-Z]{3}-\d+ )+)(.*)$/s

export function readRules(text: string): Rule[] {
  return text.split('\n').flatMap((line) => {
    const [, id, rule, open] = ROW.exec(line) ?? []
    return id === undefined || rule === undefined ? [] : [{ id, text: rule, open: open === 'o' }]
  })
}

/**
 * The tests of one file that cite rules. A test runs under each profile if its suite is made for each of `PROFILES`. Such a
 * suite ends where its closing bracket is in the first column, as the formatter writes it.
 * @throws {Error} for a test whose title is not written out.
 */
export function readCitations(file: string, text: string): Citation[] {
  const suites = [...text.matchAll(SUITE)].map(
    ({ index, 0: suite }) => [index, index + suite.length] as const,
  )
  return [...text.matchAll(TEST)].flatMap(({ index, 0: head }) => {
    const start = index + head.indexOf('it')
    const [, single, double, template] = TITLE.exec(text.slice(start)) ?? []
    const title = single ?? double ?? template
    if (title === undefined) throw new Error(`${file}: a test has no title that can be read`)
    const [, ids, rest] = CITED.exec(title) ?? []
    if (ids === undefined || rest === undefined) return []
    const everyProfile = suites.some(([from, to]) => from < start && start < to)
    return [{ file, title: rest.replaceAll(/\\(.)/g, '$1'), ids: ids.trim().split(' '), everyProfile }]
  })
}

export function rulesOfRepository(): Rule[] {
  return readRules(readFileSync(RULES, 'utf8'))
}

export function citationsOfRepository(): Citation[] {
  return readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => name.replaceAll('\\', '/'))
    .toSorted()
    .flatMap((name) => readCitations(name, readFileSync(join(TESTS, name), 'utf8')))
}

export function tableOfRepository(): string {
  return readFileSync(TABLE, 'utf8')
}

/** The table of every rule and the tests that cite it, in Markdown. */
export function renderTable(rules: readonly Rule[], citations: readonly Citation[]): string {
  const prefixes = [...new Set(rules.map(prefixOf))]
  const counts = prefixes.map((prefix) => {
    const own = rules.filter((rule) => prefixOf(rule) === prefix)
    const open = own.filter((rule) => rule.open)
    const tested = own.filter(({ id }) => citing(citations, id).length > 0)
    const everywhere = own.filter(({ id }) => citing(citations, id).some((one) => one.everyProfile))
    return `| [${prefix}](#${prefix.toLowerCase()}) | ${own.length} | ${open.length} | ${tested.length} | ${everywhere.length} |`
  })
  return `# Every rule of the interface, and the tests that prove it

Written by \`npm run coverage:contract\` from \`src/protocol/rules.md\` and the titles of the tests; not to be edited.
\`o\` marks what the interface leaves open. Tests with \`a b\` run under both profiles of the open details.

| prefix | rules | of them open | with a test | with a test under both profiles |
|---|---|---|---|---|
${counts.join('\n')}
${prefixes.map((prefix) => renderSection(prefix, rules, citations)).join('')}`
}

function renderSection(prefix: string, rules: readonly Rule[], citations: readonly Citation[]): string {
  const rows = rules
    .filter((rule) => prefixOf(rule) === prefix)
    .map(({ id, text, open }) => {
      const tests = citing(citations, id).map(
        ({ file, title, everyProfile }) => `${file}${everyProfile ? ' `a b`' : ''}: ${cell(title)}`,
      )
      return `| ${id} | ${text} | ${open ? 'o' : ''} | ${tests.length === 0 ? '**none**' : tests.join('<br>')} |`
    })
  return `\n## ${prefix}\n\n| id | rule | open | tests |\n|---|---|---|---|\n${rows.join('\n')}\n`
}

function citing(citations: readonly Citation[], id: string): Citation[] {
  return citations.filter(({ ids }) => ids.includes(id))
}

function prefixOf({ id }: Rule): string {
  return id.slice(0, 3)
}

/** Text as it may stand in a cell of a table. */
function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;').replaceAll('\n', ' ')
}

if (import.meta.main) writeFileSync(TABLE, renderTable(rulesOfRepository(), citationsOfRepository()))
