import { isObject, stringOf, type Json, type JsonObject } from '../std/json.ts'
import type { Column } from './table.ts'
import { renderTable } from './table.ts'
import { jsonLine, visible, type Terminal } from './terminal.ts'

/** A list for people or, one JSON object a line, for programs. */
export function printList(
  rows: readonly JsonObject[],
  columns: readonly Column<JsonObject>[],
  options: { json?: boolean; none: string },
  terminal: Terminal,
): void {
  if (options.json === true) terminal.out(rows.map((row) => jsonLine(row)).join(''))
  else if (rows.length === 0) terminal.out(`${options.none}\n`)
  else terminal.out(renderTable(rows, columns, terminal))
}

/** Any field as text; empty if it is missing. */
export function field(row: JsonObject, name: string): string {
  return textOf(row[name])
}

export function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** External text, each line after a bar; an empty text gives no lines. */
export function quoted(text: string, { paint }: Pick<Terminal, 'paint'>): string {
  if (text === '') return ''
  return text
    .split(/\r?\n/)
    .map((line) => `${paint('dim', '  │')} ${visible(line)}\n`)
    .join('')
}

export function titleOf(row: JsonObject): string {
  const session = isObject(row['session']) ? row['session'] : row
  return stringOf(session['title']) ?? ''
}
