import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

export const ROOT = path.resolve(import.meta.dirname, '../..')

/** What users read, in the order in which their blocks are played: a story may begin in one and continue in another. */
export const DOCUMENTS = [
  'README.md',
  'src/sidecar/README.md',
  'src/client/README.md',
  'src/emulator/README.md',
  'src/conform/README.md',
  'config/README.md',
  'test/README.md',
] as const

export type Document = (typeof DOCUMENTS)[number]

/**
 * A fenced block. Behind its language stand words that say what the test does with it:
 * - `GROUP file=NAME` is saved in the group's folder,
 * - `GROUP start=PORT` is started and left running, until something listens at the port,
 * - `GROUP run` is run to its end, which must be good,
 * - `GROUP shows` is what the group's app prints; ids may differ.
 */
export interface Block {
  language: string
  /** Where it begins, from 1. */
  line: number
  words: string[]
  text: string
  /** The value of `NAME=VALUE` among the words. */
  value(name: string): string | null
}

export function read(document: string): string {
  return readFileSync(path.join(ROOT, document), 'utf8')
}

/** The fenced blocks of all documents. */
export function blocks(): Block[] {
  return DOCUMENTS.flatMap((document) => blocksOf(read(document)))
}

/** The fenced blocks of any document. */
export function blocksOf(document: string): Block[] {
  return [...document.matchAll(/^```(\w+)([^\n]*)\n(.*?)^```$/gms)].map(
    ({ 1: language = '', 2: info = '', 3: text = '', index }) => {
      const words = info.split(' ').filter((word) => word !== '')
      return {
        language,
        line: document.slice(0, index).split('\n').length,
        words,
        text,
        value: (name) => words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) ?? null,
      }
    },
  )
}

/** The blocks of one story, in the order of `DOCUMENTS`. */
export function group(name: string): Block[] {
  return blocks().filter(({ words }) => words[0] === name)
}

/** The text under a heading of the second rank, up to the next one. */
export function section(document: Document, heading: string): string {
  const text = read(document).split(`\n## ${heading}\n`)[1]
  if (text === undefined) throw new Error(`${document} has no section "${heading}"`)
  return text.split('\n## ')[0] ?? ''
}

/** Cells of the rows of every table in `text`, titles left out. A `\|` is no border. */
export function rows(text: string): string[][] {
  const cells = text.split('\n').map((line) =>
    /^\|.*\|$/.test(line)
      ? line
          .slice(1, -1)
          .split(/(?<!\\)\|/)
          .map((cell) => cell.trim())
      : [],
  )
  return cells.filter((row, index) => row.length > 0 && !isRule(row) && !isRule(cells[index + 1] ?? []))
}

function isRule(row: readonly string[]): boolean {
  return row.length > 0 && row.every((cell) => /^:?-+:?$/.test(cell))
}

/** Text without the padding that a formatter gives to tables. */
export function squeezed(text: string): string {
  return text.replaceAll(/ {2,}/g, ' ').replaceAll(/\| ?-+ ?(?=\|)/g, '|---')
}

/** The text between `<!-- name -->` and `<!-- /name -->`, squeezed. With UPDATE=1 it is first replaced by `wanted`. */
export function generated(name: string, wanted: string): string {
  const start = `<!-- ${name} -->\n`
  const end = `<!-- /${name} -->`
  const [document, ...others] = DOCUMENTS.filter((file) => read(file).includes(start))
  if (document === undefined || others.length > 0)
    throw new Error(`not exactly one document has ${start.trim()}`)
  const text = read(document)
  const from = text.indexOf(start) + start.length
  const to = text.indexOf(end, from)
  if (to < from) throw new Error(`${document} has no ${end}`)
  if (process.env['UPDATE'] !== '1') return squeezed(text.slice(from, to))
  writeFileSync(path.join(ROOT, document), `${text.slice(0, from)}${wanted}${text.slice(to)}`)
  return squeezed(wanted)
}
