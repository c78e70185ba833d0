import { readFileSync, readdirSync } from 'node:fs'
import { join, posix } from 'node:path'
import { parseSync, Visitor, type Program } from 'oxc-parser'

/** A module below `src`, parsed. */
export interface Source {
  /** Below src, with slashes. */
  readonly path: string
  readonly text: string
  readonly program: Program
  /** Files below src that it names: static, dynamic and type imports, and re-exports. */
  readonly imports: readonly string[]
}

/** @throws when the text is no module. */
export function parse(path: string, text: string): Source {
  const { program, errors } = parseSync(path, text)
  const [error] = errors
  if (error !== undefined) throw new Error(`${path}: ${error.message}`)
  return { path, text, program, imports: importsOf(path, program) }
}

/** Every module below `folder`, those that browsers get included. */
export function sourcesIn(folder: string): Source[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.[jt]s$/.test(name))
    .map((name) => parse(name.replaceAll('\\', '/'), readFileSync(join(folder, name), 'utf8')))
}

function importsOf(path: string, program: Program): string[] {
  const found: string[] = []
  const add = (specifier: unknown): void => {
    if (typeof specifier === 'string' && specifier.startsWith('.'))
      found.push(posix.join(posix.dirname(path), specifier))
  }
  new Visitor({
    ImportDeclaration: ({ source }) => add(source.value),
    ExportNamedDeclaration: ({ source }) => add(source?.value),
    ExportAllDeclaration: ({ source }) => add(source.value),
    ImportExpression: ({ source }) => add('value' in source ? source.value : undefined),
    TSImportType: ({ source }) => add(source.value),
  }).visit(program)
  return found
}
