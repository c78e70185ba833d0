import { isObject, type Json, type JsonObject } from '../core/json.ts'
import { adminClient, timeOf, type AdminOptions } from './admin-client.ts'
import type { Context } from './context.ts'
import { textOf } from './reply.ts'
import { visible, type Paint } from './terminal.ts'
import { relative, stamp } from './text.ts'

interface StatusOptions extends AdminOptions {
  json?: boolean
}

export async function status({ terminal, env }: Context, options: StatusOptions): Promise<number> {
  const client = await adminClient(options, env)
  const answer = await client.get('/api/status')
  if (options.json === true) terminal.out(`${JSON.stringify(answer)}\n`)
  else terminal.out(`${renderStatus(answer, Date.now(), terminal.paint).join('\n')}\n`)
  return 0
}

/** The status as an outline: whatever the sidecar says is shown, also what this version does not know. */
export function renderStatus(status: JsonObject, now: number, paint: Paint): string[] {
  return outline(status, '')

  function outline(section: JsonObject, indent: string): string[] {
    const entries = Object.entries(section).filter(([, value]) => value !== undefined && value !== null)
    const width = Math.max(0, ...entries.map(([key]) => key.length))
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
        return [
          `${indent}${paint('bold', label)}`,
          ...value.filter(isObject).flatMap((one) => item(one, `${indent}  `)),
        ]
      }
      return [`${indent}${label.padEnd(width)}  ${scalar(key, value)}`]
    })
  }

  /** An entry of a list: its simple fields on one line, led by its name. */
  function item(entry: JsonObject, indent: string): string[] {
    const { name, operation, ...rest } = entry
    const lead = name ?? operation
    const fields = Object.entries(rest).flatMap(([key, value]) =>
      value === undefined || value === null || isObject(value)
        ? []
        : [`${key.replaceAll('_', ' ')} ${scalar(key, value)}`],
    )
    return [
      `${indent}${[...(lead === undefined ? [] : [paint('cyan', visible(textOf(lead)))]), ...fields].join('  ')}`,
    ]
  }

  function scalar(key: string, value: Json | undefined): string {
    const time = /(^|_)(at|since|timestamp)$/.test(key) ? timeOf(value) : null
    if (time !== null) return `${stamp(time)} ${paint('dim', `(${relative(time, now)})`)}`
    const text = visible(Array.isArray(value) ? value.map(textOf).join(', ') : textOf(value))
    const style = STYLES.get(text)
    return style === undefined ? text : paint(style, text)
  }
}

const STYLES = new Map<string, 'green' | 'yellow' | 'red'>([
  ['live', 'green'],
  ['accepted', 'green'],
  ['connecting', 'yellow'],
  ['waiting', 'yellow'],
  ['missing', 'yellow'],
  ['stopped', 'red'],
  ['rejected', 'red'],
])
