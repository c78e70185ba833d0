import { isObject, type Json, type JsonObject } from '../../std/json.ts'
import type { Environment } from './expand.ts'
import { renderPath, type Path } from './fault.ts'
import { nearest } from '../../std/nearest.ts'
import { propertyOf, valueOf, type Shape } from './shape.ts'

const PREFIX = 'SIDECAR_'

/** A key that the environment set. */
export interface Override {
  variable: string
  path: Path
}

export interface Overrides {
  applied: Override[]
  faults: { variable: string; message: string }[]
}

/**
 * `SIDECAR_HANDLERS__0__URL` sets `handlers[0].url`: this sets, in `root`, every key that such a variable names. A
 * secret that is set this way replaces its `_file`, and the reverse.
 *
 * A variable is ours when it has a `__` or names a whole section. Beside a service called `sidecar`, Kubernetes sets
 * `SIDECAR_SERVICE_HOST` and similar variables in every pod: those are ignored.
 */
export function override(root: JsonObject, shape: Shape, env: Environment): Overrides {
  const result: Overrides = { applied: [], faults: [] }
  const variables = Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && isOurs(name.slice(PREFIX.length), shape))
    // HANDLERS__2 comes before HANDLERS__10, because an entry can be added only at the end of a list.
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
  for (const variable of variables) {
    const text = env[variable]
    if (text === undefined) continue
    const set = place(root, shape, variable.slice(PREFIX.length).split('__'), text)
    if (typeof set === 'string') result.faults.push({ variable, message: set })
    else result.applied.push({ variable, path: set })
  }
  return result
}

function isOurs(name: string, shape: Shape): boolean {
  return name.includes('__') || propertyOf(shape, name.toLowerCase()) !== undefined
}

/** @returns the path that was set, or what is wrong with the name of the variable; then nothing was changed. */
function place(root: JsonObject, shape: Shape, steps: string[], text: string): Path | string {
  const path: (string | number)[] = []
  let there: Json | undefined = root
  let of: Shape = shape
  for (const step of steps) {
    const key: string | number | null = of.type === 'array' ? indexOf(step) : step.toLowerCase()
    if (key === null) return `${renderPath(path)} is a list: 0 names its first entry, 1 the next`
    const below: Shape | undefined = typeof key === 'number' ? of.items : propertyOf(of, key)
    if (below === undefined) return unknown(path, String(key), of)
    const length = Array.isArray(there) ? there.length : 0
    if (typeof key === 'number' && key > length) {
      return `${renderPath(path)} ends before this entry: the next one is number ${length}`
    }
    path.push(key)
    there = at(there, key)
    of = below
  }
  set(root, path, shape, valueOf(text, of))
  return path
}

function set(root: JsonObject, path: Path, shape: Shape, value: Json): void {
  let target: Json = root
  let of: Shape | undefined = shape
  for (const [depth, key] of path.entries()) {
    of = typeof key === 'number' ? of?.items : propertyOf(of, key)
    if (depth === path.length - 1) {
      put(target, key, value)
      if (typeof key === 'string' && isObject(target)) delete target[twin(key)]
      return
    }
    const next = at(target, key)
    const fits = of?.type === 'array' ? Array.isArray(next) : isObject(next)
    const made: Json = of?.type === 'array' ? [] : {}
    if (!fits) put(target, key, made)
    target = fits ? (next ?? made) : made
  }
}

function at(container: Json | undefined, key: string | number): Json | undefined {
  if (typeof key === 'number') return Array.isArray(container) ? container[key] : undefined
  return isObject(container) ? container[key] : undefined
}

function put(container: Json, key: string | number, value: Json): void {
  if (typeof key === 'number' && Array.isArray(container)) container[key] = value
  else if (isObject(container)) container[key] = value
}

/** `token` and `token_file` set the same thing; the one that is set last counts. */
function twin(key: string): string {
  return key.endsWith('_file') ? key.slice(0, -'_file'.length) : `${key}_file`
}

function indexOf(step: string): number | null {
  return /^[0-9]{1,4}$/.test(step) ? Number(step) : null
}

function unknown(path: Path, key: string, of: Shape | undefined): string {
  const known = Object.keys(of?.properties ?? {})
  if (known.length === 0) return `${renderPath(path)} has no keys to set one by one: give it whole, as JSON`
  const guess = nearest(key, known)
  const where = path.length === 0 ? '' : ` in ${renderPath(path)}`
  return `there is no key "${key}"${where}${guess === null ? '' : `, did you mean "${guess}"?`}`
}
