import { isObject, type Json, type JsonObject } from '../../std/json.ts'
import { timeOf } from '../admin-client.ts'
import { textOf } from '../reply.ts'
import { renderTable } from '../table.ts'
import { visible, type Paint, type Terminal } from '../terminal.ts'
import { relative, stamp } from '../text.ts'

const TIME = /(^|_)(at|since|until|timestamp)$/

/** An outline of any section, unknown fields included. */
export function outline(
  section: JsonObject,
  indent: string,
  now: number,
  screen: Pick<Terminal, 'paint' | 'width'>,
): string[] {
  const { paint } = screen
  const entries = Object.entries(section).filter(([, value]) => value !== undefined && value !== null)
  const widest = Math.max(0, ...entries.map(([key]) => key.length))
  return entries.flatMap(([key, value]) => {
    const label = visible(key.replaceAll('_', ' '))
    if (isObject(value)) {
      const inside = outline(value, `${indent}  `, now, screen)
      return [
        `${indent}${paint('bold', label)}`,
        ...(inside.length > 0 ? inside : [`${indent}  ${paint('dim', 'none')}`]),
      ]
    }
    if (Array.isArray(value) && value.some(isObject))
      return [`${indent}${paint('bold', label)}`, ...grid(value.filter(isObject), `${indent}  `, now, screen)]
    return [`${indent}${label.padEnd(widest)}  ${scalar(key, value, now, paint)}`]
  })
}

/** Entries of a list side by side, a column for each key that any of them has. */
export function grid(
  entries: readonly JsonObject[],
  indent: string,
  now: number,
  { paint, width }: Pick<Terminal, 'paint' | 'width'>,
): string[] {
  const keys = new Set(
    entries.flatMap((entry) => Object.keys(entry).filter((key) => textOf(entry[key]) !== '')),
  )
  const columns = [...keys].map((key) => ({
    shrink: Math.max(8, key.length),
    title: key.replaceAll('_', ' '),
    cell: (entry: JsonObject) => {
      const time = TIME.test(key) ? timeOf(entry[key]) : null
      return time === null ? textOf(entry[key]) : relative(time, now)
    },
    style: (entry: JsonObject) => STYLES.get(textOf(entry[key])) ?? null,
  }))
  const room = width === null ? null : width - indent.length
  const lines = renderTable(entries, columns, { width: room, paint }).trimEnd().split('\n')
  return lines.map((line) => `${indent}${line}`)
}

function scalar(key: string, value: Json | undefined, now: number, paint: Paint): string {
  const time = TIME.test(key) ? timeOf(value) : null
  if (time !== null) return `${stamp(time)} ${paint('dim', `(${relative(time, now)})`)}`
  const text = visible(Array.isArray(value) ? value.map(textOf).join(', ') : textOf(value))
  const style = STYLES.get(text)
  return style === undefined ? text : paint(style, text)
}

const STYLES = new Map<string, 'green' | 'yellow' | 'red'>([
  ['live', 'green'],
  ['up', 'green'],
  ['accepted', 'green'],
  ['accepting', 'green'],
  ['connecting', 'yellow'],
  ['waiting', 'yellow'],
  ['paused', 'yellow'],
  ['removed', 'yellow'],
  ['missing', 'yellow'],
  ['down', 'red'],
  ['stopped', 'red'],
  ['rejected', 'red'],
  ['refusing', 'red'],
])
