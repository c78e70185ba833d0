import { isObject, type Json, type JsonObject } from '../core/json.ts'
import type { Environment } from './expand.ts'
import { renderPath, type Path } from './fault.ts'
import { nearest } from './nearest.ts'
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
 * Sets, in `root`, every key that a variable `SIDECAR_` + path names (`SIDECAR_HANDLERS__0__URL`). A secret that is set
 * this way takes the place of its `_file`, and the other way round.
 *
 * A variable is one of ours when it has a `__` or names a whole section. Kubernetes puts `SIDECAR_SERVICE_HOST` and
 * the like into the environment of every pod beside a service called `sidecar`: those are left alone.
 */
export function override(root: JsonObject, shape: Shape, env: Environment): Overrides {
  const result: Overrides = { applied: [], faults: [] }
  const variables = Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && isOurs(name.slice(PREFIX.length), shape))
    // HANDLERS__2 before HANDLERS__10: a list grows from its end.
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

/** @returns the path that was set, or what is wrong with the name. */
function place(root: JsonObject, shape: Shape, steps: string[], text: string): Path | string {
  const path: (string | number)[] = []
  let target: JsonObject | Json[] = root
  let of: Shape | undefined = shape
  for (const [depth, step] of steps.entries()) {
    const key: string | number | null = Array.isArray(target) ? indexOf(step) : step.toLowerCase()
    if (key === null) return `${renderPath(path)} is a list: ${PREFIX}..._0 names its first entry`
    const below: Shape | undefined = typeof key === 'number' ? of?.items : propertyOf(of, key)
    if (below === undefined) return unknown(path, String(key), of)
    if (Array.isArray(target) && Number(key) > target.length) {
      return `${renderPath(path)} has ${target.length} entries, so the next one is number ${target.length}`
    }
    path.push(key)
    of = below
    if (depth === steps.length - 1) {
      put(target, key, valueOf(text, below))
      return path
    }
    target = descend(target, key, below)
  }
  return path
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

/** What stands at `key`, made where there is nothing to go into. */
function descend(target: JsonObject | Json[], key: string | number, shape: Shape): JsonObject | Json[] {
  const there: Json | undefined = Array.isArray(target) ? target[Number(key)] : target[key]
  if (shape.type === 'array' ? Array.isArray(there) : isObject(there)) return there as JsonObject | Json[]
  const made = shape.type === 'array' ? [] : {}
  put(target, key, made)
  return made
}

function put(target: JsonObject | Json[], key: string | number, value: Json): void {
  if (Array.isArray(target)) {
    target[Number(key)] = value
    return
  }
  target[key] = value
  const name = String(key)
  delete target[name.endsWith('_file') ? name.slice(0, -'_file'.length) : `${name}_file`]
}
