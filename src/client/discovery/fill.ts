import { BoundedMap } from '../../std/bounded-map.ts'
import { isObject } from '../../std/json.ts'
import type { Json, JsonObject } from '../../std/json.ts'

/** Discovery finds the path and the body of a request as templates. Here they get the request's ids and values. */

/** The kinds of ids in a path. */
export type Named = 'session' | 'turn' | 'call' | 'webhook' | 'artifact' | 'credential' | 'template' | 'agent'

export type Ids = Partial<Record<Named, string>>

/**
 * A path may contain several of these words: they are searched in this order. "returns" must not match turn, nor
 * "callback" call.
 */
const WORDS: readonly (readonly [Named, RegExp])[] = [
  ['turn', /^turns?(id)?$/],
  ['call', /^(call|action)s?(id)?$/],
  ['webhook', /^webhooks?(id)?$/],
  ['session', /^sessions?(id)?$/],
  ['artifact', /^artifacts?(id)?$/],
  ['credential', /^credentials?(id)?$/],
  ['template', /^templates?(id)?$/],
  ['agent', /^agents?(id)?$/],
]

/** The parameters of each path. They are cached, because finding them is the slowest part of filling a path. */
const known = new BoundedMap<string, (Named | null)[]>(256)

/** The path with its ids, each percent-encoded. A parameter of an unknown kind gets `otherwise`. */
export function fillPath(path: string, ids: Ids, otherwise = ''): string {
  let names = known.get(path)
  if (names === undefined) known.set(path, (names = parametersOf(path)))
  let at = 0
  return path.replace(/\{[^}]*\}/g, () => {
    const name = names[at++] ?? null
    return encodeId((name === null ? undefined : ids[name]) ?? otherwise)
  })
}

/**
 * An id is opaque, so it may be `..`, which a URL removes even when encoded. Encoded twice it is an
 * id that does not exist.
 */
export function encodeId(id: string): string {
  return /^\.+$/.test(id) ? id.replaceAll('.', '%252E') : encodeURIComponent(id.toWellFormed())
}

/**
 * The kind of each parameter of a path, in order: by its own name, else by the word before it; null for an unknown one.
 */
export function parametersOf(path: string): (Named | null)[] {
  const parts = path.split('/')
  return parts.flatMap((part, at) =>
    part.startsWith('{') ? [named(part) ?? named(parts[at - 1] ?? '')] : [],
  )
}

function named(part: string): Named | null {
  const words = wordsOf(part)
  return WORDS.find(([, pattern]) => words.some((word) => pattern.test(word)))?.[0] ?? null
}

/** `{toolCallId}` and `{tool_call_id}` have three words, `tool-calls` has two. */
function wordsOf(part: string): string[] {
  return part
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
}

/**
 * Bodies whose fields the interface leaves open, as templates: JSON in which `{{text}}`, `{{call_id}}` and
 * `{{session_id}}` are replaced by the values. Only fields of the document are used.
 */
export type Template = JsonObject

export function fillTemplate(template: Json, values: Record<string, string>): Json {
  if (typeof template === 'string') {
    return template.replace(/\{\{(\w+)\}\}/g, (whole, name: string) =>
      Object.hasOwn(values, name) ? String(values[name]) : whole,
    )
  }
  if (Array.isArray(template)) return template.map((entry) => fillTemplate(entry, values))
  if (!isObject(template)) return template
  return Object.fromEntries(
    Object.entries(template).map(([key, value]) => [
      key,
      value === undefined ? null : fillTemplate(value, values),
    ]),
  )
}
