import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync, Visitor, type Expression } from 'oxc-parser'
import { describe, expect, it } from 'vitest'
import { SENTENCE_MOST, sentencesOf, wordsOf } from '../readme/prose.ts'
import { sourcesIn } from './source.ts'

const SRC = join(import.meta.dirname, '../../src')
const TEST = join(import.meta.dirname, '..')
/** What is written for SQLite, for a shell or for a browser. */
const NOT_PROSE = /^\s*(?:SELECT|WITH|INSERT|UPDATE|DELETE|CREATE|REPLACE) |\bWHERE\b|compgen/
/** A tag of a template; `{}` stands for what is computed. */
const TAG = /<\/?[\w{!/][^>]*>/g
/** Ids of rules, one after the other. */
const RULES = /^\s*(?:[A-Z]{3}-\d+(?:\.\.\d+)?\s*)+$/

/** A text as it is written, `{}` for each part that is computed; null for what is no text. */
function textOf(node: Expression): string | null {
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : null
  if (node.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.cooked ?? '').join('{}')
  if (node.type !== 'BinaryExpression' || node.operator !== '+') return null
  const [left, right] = [textOf(node.left), textOf(node.right)]
  return left === null && right === null ? null : (left ?? '{}') + (right ?? '{}')
}

/** Every text of a module: log lines, errors, help, metrics, labels. */
function textsOf(code: string): string[] {
  const found: string[] = []
  const add = (node: Expression): void => {
    const text = textOf(node)
    if (text === null || NOT_PROSE.test(text) || RULES.test(text)) return
    found.push(...(text.search(TAG) < 0 ? text.split('\n') : labelsOf(text)))
  }
  new Visitor({ Literal: add, TemplateLiteral: add, BinaryExpression: add }).visit(
    parseSync('a.ts', code).program,
  )
  return found
}

/** What a browser shows of HTML: the text between tags, and the attributes that are read. */
function labelsOf(html: string): string[] {
  const read = [...html.matchAll(/\b(?:title|aria-label|placeholder|alt|content)="([^"]*)"/g)]
  return [...html.split(TAG), ...read.map(([, label = '']) => label)]
    .map((label) => label.replaceAll(/\s+/g, ' ').trim())
    .filter((label) => label !== '')
}

/** Every comment of a module; lines that follow each other are one. */
function commentsOf(code: string): string[] {
  const found: { text: string; end: number; line: boolean }[] = []
  for (const { type, value, start, end } of parseSync('a.ts', code).comments) {
    const last = found.at(-1)
    if (type === 'Line' && last?.line === true && /^\n *$/.test(code.slice(last.end, start))) {
      last.text += `\n${value}`
      last.end = end
    } else found.push({ text: value.replaceAll(/^\s*\*+ ?/gm, ''), end, line: type === 'Line' })
  }
  return found.map(({ text }) => text.trim().replaceAll(/\s@(?=returns|param|throws)/g, '\n\n@'))
}

/** Every comment of an SQL file. One behind a statement stands alone; lines of comments that follow each other are one. */
function sqlCommentsOf(sql: string): string[] {
  const found: { text: string; whole: boolean; line: number }[] = []
  for (const [line, text] of sql.split('\n').entries()) {
    const [, before = '', comment] = /^(.*?)-- ?(.*)$/.exec(text) ?? []
    if (comment === undefined) continue
    const whole = before.trim() === ''
    const last = found.at(-1)
    if (whole && last?.whole === true && last.line === line - 1) {
      last.text += `\n${comment}`
      last.line = line
    } else found.push({ text: comment, whole, line })
  }
  return found.map(({ text }) => text)
}

function tooLong(texts: readonly string[]): string[] {
  return texts.flatMap((text) => sentencesOf(text).filter((sentence) => wordsOf(sentence) > SENTENCE_MOST))
}

describe(`no sentence has more than ${SENTENCE_MOST} words`, () => {
  const sources = sourcesIn(SRC)

  it('and they are found', () => {
    const code = "/**\n * One.\n * @returns two\n */\nlog(`a ${b} c` + 'd') // e\n// f\n"
    expect(textsOf(code)).toContain('a {} cd')
    expect(labelsOf('<a title="One two" href={}>\n Three {}<br />four</a>')).toEqual([
      'Three {}',
      'four',
      'One two',
    ])
    expect(commentsOf(code)).toEqual(['One.\n\n@returns two', 'e\n f'])
    expect(tooLong([`${'word '.repeat(36)}.`])).toHaveLength(1)
    expect(sources.flatMap(({ text }) => textsOf(text)).length).toBeGreaterThan(5000)
  })

  it('in a log line, an error, a help text, a metric or a label', () => {
    const found = sources.flatMap(({ path, text }) =>
      tooLong(textsOf(text)).map((sentence) => `${path}: ${sentence}`),
    )
    expect(found).toEqual([])
  })

  it('in a page of the console', () => {
    const page = readFileSync(join(SRC, 'sidecar/admin/console/web/index.html'), 'utf8')
    expect(labelsOf(page).length).toBeGreaterThan(0)
    expect(tooLong(labelsOf(page))).toEqual([])
    const templates = sources.filter(({ path }) => path.includes('console/web/'))
    expect(templates.flatMap(({ text }) => textsOf(text))).toContain('All sessions')
  })

  it('in a comment', () => {
    const found = [...sources, ...sourcesIn(TEST)].flatMap(({ path, text }) =>
      tooLong(commentsOf(text)).map((sentence) => `${path}: ${sentence}`),
    )
    expect(found).toEqual([])
  })

  it('in a comment of SQL', () => {
    expect(sqlCommentsOf('-- One.\n-- Two.\na int, -- three\n-- four')).toEqual([
      'One.\nTwo.',
      'three',
      'four',
    ])
    const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) =>
      name.endsWith('.sql'),
    )
    const comments = files.flatMap((name) =>
      sqlCommentsOf(readFileSync(join(SRC, name), 'utf8')).map((text) => ({ name, text })),
    )
    expect(comments.length).toBeGreaterThan(50)
    expect(
      comments.flatMap(({ name, text }) => tooLong([text]).map((sentence) => `${name}: ${sentence}`)),
    ).toEqual([])
  })
})
