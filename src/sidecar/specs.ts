import { pathToFileURL } from 'node:url'
import type { Config, HandlerConfig, ToolConfig } from './config/config.ts'
import type { SecretChange } from './config/watch.ts'
import { doubtAbout } from '../core/event-type.ts'
import { parseDuration } from '../std/duration.ts'
import { messageOf, OperatorError } from '../std/errors.ts'
import type { Secrets } from '../std/signature.ts'
import type { HandlerSpec, ModuleHandler } from '../core/handler.ts'
import { TOOL_ERROR, type ToolSpec } from '../core/tool.ts'
import type { HandlerModule } from './library/handlers.ts'
import type { ToolDefinition } from './library/tool.ts'

/**
 * Handlers and tools, ready to run: those of the configuration, with their modules imported, and those that the program
 * added by `on` and `tool`.
 */
export interface Specs {
  handlers: HandlerSpec[]
  tools: ToolSpec[]
  /** Log lines about event types that no fact has, in modules and in calls of `on`. */
  warnings: string[]
}

/** The name of the handler that runs the functions given to `sidecar.on`. */
const LIBRARY_HANDLER = 'library'

const TOOL_DEFAULTS = {
  timeout: 30_000,
  concurrency: 8,
  retry: { attempts: 3, base: 250, max: 5000 },
  error: TOOL_ERROR,
}

/**
 * @throws {OperatorError} when a module cannot be imported or has no usable export, or a tool or handler is defined
 * twice.
 */
export async function loadSpecs(
  config: Config,
  own: { events: string[]; handle: ModuleHandler; tools: readonly ToolDefinition[] },
): Promise<Specs> {
  const modules = new Map<string, Promise<HandlerModule>>()
  const load = (path: string): Promise<HandlerModule> => {
    let found = modules.get(path)
    if (found === undefined) modules.set(path, (found = importModule(path)))
    return found
  }
  const handlers: HandlerSpec[] = []
  for (const handler of config.handlers) handlers.push(await handlerSpec(handler, load))
  if (own.events.length > 0) handlers.push(libraryHandler(own.events, own.handle))
  const tools: ToolSpec[] = []
  for (const tool of config.tools) tools.push(await toolSpec(tool, load))
  for (const definition of own.tools) tools.push(definedTool(definition))
  for (const { target } of config.handlers) {
    if (target.kind !== 'module') continue
    for (const definition of (await load(target.path)).tools) {
      if (!tools.some(({ name }) => name === definition.name)) tools.push(definedTool(definition))
    }
  }
  refuseTwice('tool', tools)
  refuseTwice('handler', handlers)
  const warnings = doubtsAbout(own.events, 'sidecar')
  for (const [path, module] of modules) warnings.push(...doubtsAbout((await module).events, path))
  return { handlers, tools, warnings }
}

function doubtsAbout(events: readonly string[], origin: string): string[] {
  return events.flatMap((type) => {
    const doubt = doubtAbout(type)
    return doubt === null ? [] : [`${origin}: on "${type}" ${doubt}`]
  })
}

function refuseTwice(kind: 'tool' | 'handler', specs: readonly { name: string }[]): void {
  const names = specs.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new OperatorError(`${kind} ${twice} is defined twice`, 2)
}

async function importModule(path: string): Promise<HandlerModule> {
  let exported: unknown
  try {
    exported = await import(pathToFileURL(path).href)
  } catch (error) {
    throw new OperatorError(`module ${path} cannot be imported: ${messageOf(error)}`, 2)
  }
  const value =
    typeof exported === 'object' && exported !== null && 'default' in exported ? exported.default : undefined
  if (!isHandlerModule(value)) {
    throw new OperatorError(`module ${path} has no default export made by defineHandlers({ on, tools })`, 2)
  }
  return value
}

function isHandlerModule(value: unknown): value is HandlerModule {
  return typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'handlers'
}

async function handlerSpec(
  config: HandlerConfig,
  load: (path: string) => Promise<HandlerModule>,
): Promise<HandlerSpec> {
  const { target, ...rest } = config
  if (target.kind === 'http') return { ...rest, target: calledAt(target) }
  const { handle } = await load(target.path)
  return { ...rest, target: { kind: 'module', handle } }
}

/** Secrets may be rotated while the sidecar runs, so they are read from `current` at each use. */
function calledAt<T extends { secrets: string[] }>(target: T): Omit<T, 'secrets'> & { secrets: Secrets } {
  return { ...target, secrets: { current: target.secrets } }
}

function libraryHandler(events: string[], handle: ModuleHandler): HandlerSpec {
  return {
    name: LIBRARY_HANDLER,
    target: { kind: 'module', handle },
    events,
    format: 'standard',
    ordered: true,
    concurrency: 16,
    batch: { max: 1, wait: 0 },
    timeout: 15_000,
    retry: { attempts: 16, base: 1000, max: 3_600_000 },
  }
}

async function toolSpec(
  config: ToolConfig,
  load: (path: string) => Promise<HandlerModule>,
): Promise<ToolSpec> {
  const { target, description, parameters, ...rest } = config
  if (target.kind === 'http') {
    return {
      ...rest,
      target: calledAt(target),
      description: description ?? '',
      parameters: parameters ?? { type: 'object' },
    }
  }
  const definition = (await load(target.path)).tools.find(({ name }) => name === config.name)
  if (definition === undefined) {
    throw new OperatorError(`module ${target.path} defines no tool named ${config.name}`, 2)
  }
  return {
    ...rest,
    target: { kind: 'module', run: definition.run },
    description: description ?? definition.description,
    parameters: parameters ?? definition.parameters,
  }
}

function definedTool({ name, description, parameters, run, settings }: ToolDefinition): ToolSpec {
  const { retry } = settings
  return {
    name,
    description,
    parameters,
    target: { kind: 'module', run },
    timeout: duration(settings.timeout) ?? TOOL_DEFAULTS.timeout,
    deadline: duration(settings.deadline) ?? null,
    concurrency: settings.concurrency ?? TOOL_DEFAULTS.concurrency,
    retry: {
      attempts: retry?.attempts ?? TOOL_DEFAULTS.retry.attempts,
      base: duration(retry?.base) ?? TOOL_DEFAULTS.retry.base,
      max: duration(retry?.max) ?? TOOL_DEFAULTS.retry.max,
    },
    afterCrash: settings.after_crash ?? 'retry',
    error: settings.error ?? TOOL_DEFAULTS.error,
    onNotDelivered: settings.on_not_delivered ?? 'resend',
  }
}

function duration(text: string | undefined): number | undefined {
  return text === undefined ? undefined : (parseDuration(text) ?? undefined)
}

/** The `tools` array to declare on a session (src/sidecar/README.md, Function tools). */
export function declaration(tools: readonly ToolSpec[]) {
  return tools.map(({ name, description, parameters, deadline }) => ({
    type: 'function' as const,
    name,
    description,
    parameters,
    ...(deadline === null ? {} : { timeout_seconds: Math.ceil(deadline / 1000) }),
  }))
}

/** After a secret was rotated, the next callback or call is signed with the new one. */
export function replaceSecrets(
  specs: Specs,
  change: Extract<SecretChange, { of: 'handler' | 'tool' }>,
): void {
  const list = change.of === 'handler' ? specs.handlers : specs.tools
  const target = list.find(({ name }) => name === change.name)?.target
  if (target?.kind === 'http') target.secrets.current = change.secrets
}
