import type { JsonObject } from '../../std/json.ts'
import { isObject, type Json } from '../../std/json.ts'
import { expand, type Environment } from './expand.ts'
import type { Path } from './fault.ts'

/** A JSON Schema of a tool needs about twelve levels; deeper nesting is a mistake or an attack. */
const MAX_DEPTH = 64
/** The most values in one configuration. Ten thousand handlers fit; anchors that multiply each other do not. */
const MAX_VALUES = 200_000

/** `part`: whether the key itself is wrong, or its value. */
export type Blame = (path: Path, message: string, part?: 'key' | 'value') => void

export interface Tree {
  root: Json | undefined
  /** Paths (as JSON) of strings in which a variable was expanded. */
  expanded: Set<string>
}

/**
 * Copies the value of a parser or a caller into plain JSON, and expands variables when `env` is given. Values that JSON
 * cannot express, a key `__proto__`, and objects that contain themselves are faults.
 */
export function plant(value: unknown, env: Environment | null, blame: Blame): Tree {
  const expanded = new Set<string>()
  let left = MAX_VALUES

  function copy(from: unknown, path: Path): Json | undefined {
    if (left-- === 0) blame(path, `holds more than ${MAX_VALUES} values`)
    if (left < 0) return undefined
    if (path.length > MAX_DEPTH) {
      blame(path.slice(0, 3), `is nested more than ${MAX_DEPTH} levels deep`)
      left = -1
      return undefined
    }
    if (typeof from === 'string') return env === null ? from : fill(from, path, env)
    if (typeof from === 'boolean' || from === null || from === undefined) return from
    if (typeof from === 'number' && Number.isFinite(from)) return from
    if (Array.isArray(from)) return from.map((item, index) => copy(item, [...path, index]) ?? null)
    if (isObject(from)) return copyObject(from, path)
    blame(path, 'must be a JSON value')
    return undefined
  }

  function copyObject(from: JsonObject, path: Path): JsonObject {
    const to: JsonObject = {}
    for (const [key, item] of Object.entries(from)) {
      if (key === '__proto__') blame([...path, key], 'no key may have this name', 'key')
      else to[key] = copy(item, [...path, key])
    }
    return to
  }

  function fill(text: string, path: Path, variables: Environment): string {
    if (!text.includes('${')) return text
    const { text: filled, faults } = expand(text, variables)
    for (const fault of faults) blame(path, fault)
    expanded.add(JSON.stringify(path))
    return filled
  }

  return { root: copy(value, []), expanded }
}
