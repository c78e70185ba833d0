import path from 'node:path'
import { messageOf } from '../../std/errors.ts'
import { isObject, type JsonObject } from '../../std/json.ts'
import type { Config } from './config.ts'
import { parseConfigText, type ConfigDocument } from './document.ts'
import type { Environment } from './expand.ts'
import { ConfigError, renderPath, type Fault, type Path } from './fault.ts'
import { override, type Override } from './override.ts'
import { resolve } from './resolve.ts'
import { storeFolders } from './store-folder.ts'
import { applyRules, cautions } from './rules.ts'
import type { ConfigInput, Settings } from './schema.ts'
import { isMissing, readSmallFile } from './secrets.ts'
import { settings } from './settings.ts'
import { settle } from './shape.ts'
import { plant, type Blame } from './tree.ts'
import { judge } from './validate.ts'

/** Bytes. Enough for a thousand handlers and tools; a longer file is not a configuration. */
const MAX_CONFIG_FILE = 1024 * 1024

export interface Loaded {
  config: Config
  /** Allowed, but worth a warning. */
  warnings: Fault[]
  /** Absolute paths of the files that were read: the configuration and the secret files. */
  files: string[]
  /** The keys as in the file, every default filled in, secrets included: for `print.ts`. */
  settings: Settings
}

export interface ResolveOptions {
  /** The directory that relative paths start from. Default: the working directory. */
  base?: string
  /** Overrides (`SIDECAR_…`). Default: none. */
  env?: Environment
  /** Milliseconds since the epoch, to warn about an expired token; without it there is no warning. */
  now?: number
}

/** `loadSection` uses this in place of `service`, the one section that every configuration must have. */
const REQUIRED = { base_url: 'http://127.0.0.1', token: 'unasked' }
const MAKE_ONE = 'write one with "session-sidecar init", or name another file with -c'

/**
 * Reads a configuration file, YAML or JSON (config/README.md, Configuration).
 * @param now milliseconds since the epoch, to warn about an expired token; without it there is no warning.
 * @throws {ConfigError} with all faults.
 */
export async function loadConfig(file: string, env: Environment, now = 0): Promise<Loaded> {
  const document = await read(file)
  const absolute = path.resolve(file)
  const source = { file, document, expansions: env }
  const loaded = await build(document.value, source, { env, base: path.dirname(absolute), now })
  return { ...loaded, files: [absolute, ...loaded.files] }
}

/**
 * Reads one section: `store backup` needs only `store`, so a missing token or a fault in another section must not stop it.
 * @throws {ConfigError} with all faults of that section.
 */
export async function loadSection<Section extends 'admin' | 'store'>(
  file: string,
  env: Environment,
  section: Section,
): Promise<Config[Section]> {
  const document = await read(file)
  const { value } = document
  const part = isObject(value) ? { service: REQUIRED, [section]: value[section] ?? {} } : value
  const prefix = `SIDECAR_${section.toUpperCase()}__`
  const overrides = Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith(prefix)))
  const source = { file, document, expansions: env }
  const base = path.dirname(path.resolve(file))
  return (await build(part, source, { env: overrides, base, now: 0 })).config[section]
}

/** @throws {ConfigError} when the file cannot be read, or is not YAML. */
async function read(file: string): Promise<ConfigDocument> {
  const text = await readSmallFile(file, MAX_CONFIG_FILE).catch((error: unknown) => {
    const fault = { file: null, line: null, column: null, path: '', message: messageOf(error) }
    throw new ConfigError([fault], isMissing(error) ? MAKE_ONE : 'name another file with -c')
  })
  const document = parseConfigText(file, text)
  if (document.faults.length > 0) throw new ConfigError(document.faults)
  return document
}

/**
 * Resolves a configuration that a program gives as an object, with the same keys as the file. Values are used
 * unchanged: no variable is expanded.
 * @throws {ConfigError} with all faults.
 */
export function resolveConfig(input: ConfigInput, options: ResolveOptions = {}): Promise<Loaded> {
  const { base = process.cwd(), env = {}, now = 0 } = options
  return build(input, { file: null, document: null, expansions: null }, { env, base, now })
}

/** A fault before its position is known. */
interface Finding {
  path: Path
  message: string
  part: 'key' | 'value'
}

interface Source {
  file: string | null
  document: ConfigDocument | null
  /** Variables for `${…}`; null leaves texts unchanged. */
  expansions: Environment | null
}

async function build(
  value: unknown,
  source: Source,
  { env, base, now }: Required<ResolveOptions>,
): Promise<Loaded> {
  let applied: Override[] = []
  const found: Finding[] = []
  const blame: Blame = (at, message, part = 'value') => void found.push({ path: at, message, part })
  const placed = (faults: Finding[]): Fault[] =>
    firstOfEach(faults)
      .map((fault) => place(fault, source, applied))
      .sort(inOrder)

  const { root, expanded } = plant(value ?? {}, source.expansions, blame)
  if (!isObject(root)) blame([], 'must be a map of sections: service, store, handlers and so on')
  const tree: JsonObject = isObject(root) ? root : {}
  const overrides = override(tree, settings, env)
  applied = overrides.applied
  if (value === null && applied.length === 0) blame([], 'the file is empty')
  // The environment overrides the file, so a fault of the file at that key is ignored.
  const standing = found.filter((fault) => !applied.some((set) => replaces(set.path, fault.path)))
  found.splice(0, found.length, ...standing)
  const misnamed = overrides.faults.map(({ variable, message }): Fault => ({
    file: variable,
    line: null,
    column: null,
    path: '',
    message,
  }))

  if (found.every((fault) => fault.path.length > 0)) {
    settle(tree, settings, expanded)
    judge(tree, blame)
    await applyRules(tree, blame)
  }
  if (found.length + misnamed.length > 0) throw new ConfigError([...placed(found), ...misnamed])

  const complete = tree as unknown as Settings
  const { expansions } = source
  const folders = { base, store: storeFolders(expansions ?? {}) }
  const config = await resolve(complete, folders, expansions ?? env, blame)
  if (found.length > 0) throw new ConfigError(placed(found))
  const warnings: Finding[] = []
  const warn: Blame = (at, message) => void warnings.push({ path: at, message, part: 'value' })
  cautions(complete, config, now, warn)
  const files = config.secretFiles.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.kind === 'file' ? part.file : [])),
  )
  return { config, warnings: placed(warnings), files, settings: complete }
}

/**
 * Keeps one fault for each path, because further faults of a value follow from the first. That the key itself is
 * unknown counts more than any fault of its value.
 */
function firstOfEach(faults: Finding[]): Finding[] {
  const byPath = new Map<string, Finding>()
  for (const fault of faults) {
    const key = renderPath(fault.path)
    if (!byPath.has(key) || fault.part === 'key') byPath.set(key, fault)
  }
  return [...byPath.values()]
}

/** In the order of the file; faults of environment variables come last. */
function inOrder(a: Fault, b: Fault): number {
  return (a.line ?? Infinity) - (b.line ?? Infinity) || (a.column ?? 0) - (b.column ?? 0) || 0
}

function place(fault: Finding, source: Source, applied: Override[]): Fault {
  const at = { path: renderPath(fault.path), message: fault.message }
  const set = applied.findLast((one) => startsWith(fault.path, one.path))
  if (set !== undefined) return { file: set.variable, line: null, column: null, ...at }
  const spot = source.document?.place(fault.path, fault.part)
  return { file: source.file, line: spot?.line ?? null, column: spot?.column ?? null, ...at }
}

/**
 * Whether the variable that set `set` makes a fault at `other` irrelevant. `SIDECAR_SERVICE__TOKEN` also replaces
 * `service.token_file`, and the reverse.
 */
function replaces(set: Path, other: Path): boolean {
  if (startsWith(other, set)) return true
  const sibling = (at: Path): string => renderPath(at).replace(/_file$/, '')
  return set.length === other.length && sibling(set) === sibling(other)
}

function startsWith(path: Path, prefix: Path): boolean {
  return prefix.every((step, index) => path[index] === step)
}
