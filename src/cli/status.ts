import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { adminClient, timeOf, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { textOf } from './reply.ts'
import { renderTable } from './table.ts'
import { jsonLine, visible, type Terminal } from './terminal.ts'
import { relative, stamp } from './text.ts'

interface StatusOptions extends AdminOptions {
  json?: boolean
}

export async function status({ terminal, env }: Context, options: StatusOptions): Promise<number> {
  const client = await adminClient(options, env)
  const answer = await client.get('/api/status')
  if (options.json === true) terminal.out(jsonLine(answer))
  else terminal.out(`${renderStatus(answer, Date.now(), terminal).join('\n')}\n`)
  return 0
}

/** The status as an outline: whatever the sidecar says is shown, also what this version does not know. */
export function renderStatus(
  status: JsonObject,
  now: number,
  { paint, width }: Pick<Terminal, 'paint' | 'width'>,
): string[] {
  return outline(status, '')

  function outline(section: JsonObject, indent: string): string[] {
    const entries = Object.entries(section).filter(([, value]) => value !== undefined && value !== null)
    const widest = Math.max(0, ...entries.map(([key]) => key.length))
    return entries.flatMap(([key, value]) => {
      const label = visible(key.replaceAll('_', ' '))
      if (isObject(value)) {
        const inside = outline(value, `${indent}  `)
        return [
          `${indent}${paint('bold', label)}`,
          ...(inside.length > 0 ? inside : [`${indent}  ${paint('dim', 'none')}`]),
        ]
      }
      if (Array.isArray(value) && value.some(isObject)) {
        return [`${indent}${paint('bold', label)}`, ...table(value.filter(isObject), `${indent}  `)]
      }
      return [`${indent}${label.padEnd(widest)}  ${scalar(key, value)}`]
    })
  }

  /** Entries of a list side by side, a column for each key that any of them has. */
  function table(entries: readonly JsonObject[], indent: string): string[] {
    const keys = new Set(
      entries.flatMap((entry) => Object.keys(entry).filter((key) => textOf(entry[key]) !== '')),
    )
    const columns = [...keys].map((key) => ({
      shrink: Math.max(8, key.length),
      title: key.replaceAll('_', ' '),
      cell: (entry: JsonObject) => textOf(entry[key]),
      style: (entry: JsonObject) => STYLES.get(textOf(entry[key])) ?? null,
    }))
    const room = width === null ? null : width - indent.length
    const lines = renderTable(entries, columns, { width: room, paint }).trimEnd().split('\n')
    return lines.map((line) => `${indent}${line}`)
  }

  function scalar(key: string, value: Json | undefined): string {
    const time = /(^|_)(at|since|until|timestamp)$/.test(key) ? timeOf(value) : null
    if (time !== null) return `${stamp(time)} ${paint('dim', `(${relative(time, now)})`)}`
    const text = visible(Array.isArray(value) ? value.map(textOf).join(', ') : textOf(value))
    const style = STYLES.get(text)
    return style === undefined ? text : paint(style, text)
  }
}

const STYLES = new Map<string, 'green' | 'yellow' | 'red'>([
  ['live', 'green'],
  ['accepted', 'green'],
  ['accepting', 'green'],
  ['connecting', 'yellow'],
  ['waiting', 'yellow'],
  ['missing', 'yellow'],
  ['stopped', 'red'],
  ['rejected', 'red'],
  ['refusing', 'red'],
])
