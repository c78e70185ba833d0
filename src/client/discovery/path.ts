/** The kinds of ids in a path. */
export type Named = 'session' | 'turn' | 'call' | 'webhook' | 'artifact' | 'credential' | 'template' | 'agent'

export type Ids = Partial<Record<Named, string>>

/** Plain paths only: a path of a document must stay on the service's own origin, below its own address. */
const PLAIN = /^(\/([A-Za-z0-9._~:@!$&'()*+,;=-]+|\{[A-Za-z_][A-Za-z0-9_.-]*\}))+$/
/** Characters of a path template. */
const LENGTH_MAX = 512

/** In the order of the search: a path may contain several. "Returns" are no turns, a "callback" is no call. */
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

/** True for a template such as `/v1/sessions/{session_id}/turns` that may be joined to the base address. */
export function isPlainPath(path: string): boolean {
  return path.length <= LENGTH_MAX && PLAIN.test(path) && !path.split('/').some((part) => /^\.+$/.test(part))
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

/** `{toolCallId}`, `{tool_call_id}` and `tool-calls` are of three words, or two. */
function wordsOf(part: string): string[] {
  return part
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
}

/** True when `ids` has a value for every parameter. */
export function canFill(path: string, ids: readonly Named[]): boolean {
  return parametersOf(path).every((name) => name !== null && ids.includes(name))
}

export function endsInParameter(path: string): boolean {
  return path.endsWith('}')
}

export function lastWord(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** The path with its ids, each percent-encoded. A parameter of an unknown kind gets `otherwise`. */
export function fillPath(path: string, ids: Ids, otherwise = ''): string {
  const names = parametersOf(path)
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

/** Two templates are the same path when only the names of their parameters differ. */
export function samePath(one: string, other: string): boolean {
  return one.replace(/\{[^}]*\}/g, '{}') === other.replace(/\{[^}]*\}/g, '{}')
}
