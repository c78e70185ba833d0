import { parametersOf, type Named } from './parameters.ts'

/** Plain paths only: a path of a document must stay on the service's own origin, below its own address. */
const PLAIN = /^(\/([A-Za-z0-9._~:@!$&'()*+,;=-]+|\{[A-Za-z_][A-Za-z0-9_.-]*\}))+$/
/** Characters of a path template. */
const LENGTH_MAX = 512

/** True for a template such as `/v1/sessions/{session_id}/turns` that may be joined to the base address. */
export function isPlainPath(path: string): boolean {
  return path.length <= LENGTH_MAX && PLAIN.test(path) && !path.split('/').some((part) => /^\.+$/.test(part))
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

/** Two templates are the same path when only the names of their parameters differ. */
export function samePath(one: string, other: string): boolean {
  return one.replace(/\{[^}]*\}/g, '{}') === other.replace(/\{[^}]*\}/g, '{}')
}
