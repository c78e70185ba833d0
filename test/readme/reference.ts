import { Histogram, type Metric, type Registry } from 'prom-client'
import { isObject, stringOf, type Json, type JsonObject } from '../../src/std/json.ts'

/** A table in Markdown. */
function table(titles: readonly string[], lines: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return `\n${[line(titles), `|${'---|'.repeat(titles.length)}`, ...lines.map(line)].join('\n')}\n\n`
}

/** Every key of the configuration, from its JSON Schema. */
export function configurationReference(schema: JsonObject): string {
  return table(['key', 'value', 'default', 'what it does'], keys(schema, ''))
}

function keys(schema: JsonObject, path: string): string[][] {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  return Object.entries(properties).flatMap(([name, property]) => {
    if (!isObject(property)) return []
    const key = path === '' ? name : `${path}.${name}`
    const inside = entriesOf(property)
    if (inside !== null) return keys(inside.schema, `${key}${inside.list ? '[]' : ''}`)
    return [[`\`${key}\``, valueOf(property), defaultOf(property, required.includes(name)), textOf(property)]]
  })
}

/** A section, or the entries of a list of sections. */
function entriesOf(property: JsonObject): { schema: JsonObject; list: boolean } | null {
  if (isObject(property['properties'])) return { schema: property, list: false }
  const { items } = property
  return isObject(items) && isObject(items['properties']) ? { schema: items, list: true } : null
}

const FORMATS: Readonly<Record<string, string>> = {
  listen: '`HOST:PORT`',
  token: 'text',
  'base-url': 'http or https address',
  'http-url': 'http or https address',
  'webhook-url': 'https address',
  'store-url': '`sqlite:FILE`, `postgres://…`',
  'callback-secret': '`whsec_` and base64',
  'date-or-time': 'date or time',
}

function valueOf(property: JsonObject): string {
  const words = wordsOf(property)
  if (words.length > 0) return words.join(', ')
  const range = property['durationRange']
  if (Array.isArray(range)) return `duration, ${range.map(String).join(' to ')}`
  const type = stringOf(property['type'])
  const { minimum, maximum, items } = property
  if (type === 'boolean') return '`true`, `false`'
  if (type === 'integer') return `${JSON.stringify(minimum)} to ${JSON.stringify(maximum)}`
  if (type === 'array') return `list of ${valueOf(isObject(items) ? items : {})}`.replace(/ text$/, ' texts')
  if (type === 'object') return 'object'
  return FORMATS[stringOf(property['format']) ?? ''] ?? 'text'
}

/** The words that a value may be, and the other forms that it may have. */
function wordsOf(property: JsonObject): string[] {
  const { anyOf } = property
  // Beside a pattern they only suggest.
  const choices = Array.isArray(anyOf) && property.pattern === undefined ? anyOf.filter(isObject) : [property]
  return choices.flatMap((choice) => {
    const listed = 'const' in choice ? [choice['const']] : Array.isArray(choice['enum']) ? choice['enum'] : []
    if (listed.length > 0) return listed.map((word) => `\`${textOr(word)}\``)
    return choice['type'] === 'integer' && choices.length > 1 ? ['a number'] : []
  })
}

function defaultOf(property: JsonObject, required: boolean): string {
  if (required) return 'required'
  const value = property['default']
  return value === undefined ? '' : `\`${textOr(value)}\``
}

function textOr(value: Json | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function textOf(property: JsonObject): string {
  // What is in quotes is meant to the letter, and a star there is no emphasis.
  return (stringOf(property['description']) ?? '').replaceAll(/"([^"]*)"/g, '`$1`')
}

/** Every fault of the emulator, from the schema of its settings. */
export function faultsReference(schema: JsonObject): string {
  return table(['fault', 'value', 'what it does'], faults(schema, ''))
}

function faults(schema: JsonObject, path: string): string[][] {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  return Object.entries(properties).flatMap(([name, property]) => {
    if (!isObject(property)) return []
    const key = `${path}${name}`
    const { items } = property
    const entries = isObject(items) && isObject(items['properties']) ? faults(items, `${key}[].`) : []
    const value = entries.length > 0 ? 'list' : kindOfFault(property)
    return [[`\`${key}\``, value, textOf(property)], ...entries]
  })
}

function kindOfFault(property: JsonObject): string {
  const { type, minimum, maximum } = property
  if (type === 'number') return `${JSON.stringify(minimum)} to ${JSON.stringify(maximum)}`
  return type === 'integer' && minimum === undefined ? 'whole number' : valueOf(property)
}

/** Every metric, from the registry that counts them. */
export function metricsReference(registry: Registry): string {
  const metrics = registry.getMetricsAsArray() as unknown as (Metric & Described)[]
  const lines = metrics.map((metric) => [
    `\`${metric.name}\``,
    kindOf(metric),
    metric.labelNames.join(', '),
    metric.help,
  ])
  return table(
    ['metric', 'kind', 'labels', 'what it counts'],
    lines.sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
  )
}

interface Described {
  name: string
  help: string
  labelNames: readonly string[]
}

function kindOf(metric: object): string {
  return metric instanceof Histogram ? 'histogram' : metric.constructor.name.toLowerCase()
}

/** Every admin route, from the description that a sidecar gives of itself. */
export function routesReference(description: JsonObject): string {
  const paths = isObject(description['paths']) ? description['paths'] : {}
  const lines = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(isObject(operations) ? operations : {}).flatMap(([method, operation]) => {
      if (!isObject(operation)) return []
      return [
        [`\`${method.toUpperCase()} ${path}\``, queryOf(operation), stringOf(operation['summary']) ?? ''],
      ]
    }),
  )
  return table(['route', 'query parameters', 'what'], lines)
}

/** Parameters beside those that every list takes. */
function queryOf(operation: JsonObject): string {
  const parameters = Array.isArray(operation['parameters']) ? operation['parameters'].filter(isObject) : []
  const named = parameters
    .filter((one) => one['in'] === 'query')
    .map((one) => `\`${stringOf(one['name']) ?? ''}\``)
  return named.filter((name) => name !== '`limit`' && name !== '`after`').join(', ')
}
