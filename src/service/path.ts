/** What an id in a path names. */
export type Named = 'session' | 'turn' | 'call' | 'webhook' | 'artifact' | 'credential' | 'template' | 'agent'

export type Ids = Partial<Record<Named, string>>

/** Plain paths only: what a document names must stay on the service's own origin, below its own address. */
const PLAIN = /^(\/([A-Za-z0-9._~:@!$&'()*+,;=-]+|\{[A-Za-z_][A-Za-z0-9_.-]*\}))+$/
/** Characters of a path template. */
const LENGTH_MAX = 512

const WORDS: readonly (readonly [Named, RegExp])[] = [
  ['turn', /turn/i],
  ['call', /call|action/i],
  ['webhook', /webhook/i],
  ['session', /session/i],
  ['artifact', /artifact/i],
  ['credential', /credential/i],
  ['template', /template/i],
  ['agent', /agent/i],
]

/** True for a template such as `/v1/sessions/{session_id}/turns` that may be joined to the base address. */
export function isPlainPath(path: string): boolean {
  return path.length <= LENGTH_MAX && PLAIN.test(path) && !path.split('/').some((part) => /^\.+$/.test(part))
}

/** What each parameter of a path names, in order: by its own name, else by the word before it; null when neither says. */
export function parametersOf(path: string): (Named | null)[] {
  const parts = path.split('/')
  return parts.flatMap((part, at) =>
    part.startsWith('{') ? [named(part) ?? named(parts[at - 1] ?? '')] : [],
  )
}

function named(word: string): Named | null {
  return WORDS.find(([, pattern]) => pattern.test(word))?.[0] ?? null
}

/** True when `ids` suffices to fill every parameter. */
export function canFill(path: string, ids: readonly Named[]): boolean {
  return parametersOf(path).every((name) => name !== null && ids.includes(name))
}

export function endsInParameter(path: string): boolean {
  return path.endsWith('}')
}

export function lastWord(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

/** The path with its ids in place, each percent-encoded. A parameter that names nothing we know gets `otherwise`. */
export function fillPath(path: string, ids: Ids, otherwise = ''): string {
  const names = parametersOf(path)
  let at = 0
  return path.replace(/\{[^}]*\}/g, () => {
    const name = names[at++] ?? null
    return encodeId((name === null ? undefined : ids[name]) ?? otherwise)
  })
}

/** An id is opaque, so it may be `..`, which a URL swallows even when encoded; encoded twice it is an id that nothing has. */
function encodeId(id: string): string {
  return /^\.+$/.test(id) ? id.replaceAll('.', '%252E') : encodeURIComponent(id.toWellFormed())
}

/** Two templates are the same path when only the names of their parameters differ. */
export function samePath(one: string, other: string): boolean {
  return one.replace(/\{[^}]*\}/g, '{}') === other.replace(/\{[^}]*\}/g, '{}')
}
