import { loadConfig, resolveConfig } from './config/load.ts'
import type { ConfigInput } from './config/schema.ts'
import { renderFault } from './config/fault.ts'
import { OperatorError, thrownName } from '../std/errors.ts'
import type { ModuleHandler } from '../core/handler.ts'
import type { JsonObject } from '../std/json.ts'
import { guarded, type Observer } from '../core/observer.ts'
import type { Log } from '../std/ports.ts'
import type { EventHandler, EventType } from './library/events.ts'
import { createRouter } from './library/handlers.ts'
import type { ToolDefinition } from './library/tool.ts'
import { asLog, createLogger } from './logger.ts'
import { secretsOf } from './secrets.ts'
import { loadSpecs } from './specs.ts'
import type { Address, Running } from './start.ts'
import { VERSION } from './version.ts'

export interface SidecarOptions {
  /** A file, or the same keys as an object. */
  config: string | ConfigInput
  /** For `${VAR}` and `SIDECAR_…`; default: the process's own with a file, none with an object. */
  env?: Readonly<Record<string, string | undefined>>
  /** Where the log goes. Default: standard error, as the configuration says. */
  log?: Log
}

/** An entry of the `tools` array of a session. */
export interface DeclaredTool {
  type: 'function'
  name: string
  description: string
  parameters: JsonObject
  /** Where the tool has a `deadline`. */
  timeout_seconds?: number
}

/** A sidecar in this process (src/sidecar/README.md, As a library). */
export interface Sidecar {
  /** Calls `handler` for facts of a type, of a family (`turn.*`) or all (`*`). Before `start`. */
  on<Type extends EventType>(type: Type, handler: EventHandler<Type>): Sidecar
  /** Adds a function tool. Before `start`. */
  tool(definition: ToolDefinition): Sidecar
  /** Tells `observer` what happens. Before `start`. */
  observe(observer: Partial<Observer>): Sidecar
  /**
   * Opens the store and the listeners, and follows the service.
   * @throws {OperatorError} with exit code 3 when the service rejects the token, 1 or 2 when something cannot be used.
   */
  start(): Promise<void>
  /**
   * Settles when the sidecar cannot go on: another process has taken its store over, or the files of the store were deleted
   * or replaced. It takes nothing more and has to be stopped; another one may be started on the store that is there then.
   */
  readonly failed: Promise<Error>
  /** Stops claiming, lets what is under way end, closes. Safe to call again. */
  stop(): Promise<void>
  /** Where the listeners are, once started. */
  readonly address: { admin: Address | null; webhooks: Address | null }
  /** The `tools` array to declare on a session. Once started. */
  tools(): DeclaredTool[]
}

/**
 * Loads the configuration; nothing is opened before `start`.
 * @throws {ConfigError} with every fault at once.
 */
export async function createSidecar(options: SidecarOptions): Promise<Sidecar> {
  const load = () =>
    typeof options.config === 'string'
      ? loadConfig(options.config, options.env ?? process.env, Date.now())
      : resolveConfig(options.config, { env: options.env ?? {}, now: Date.now() })
  let { config, warnings } = await load()
  const secrets = new Set(secretsOf(config))
  const log = options.log ?? asLog(await createLogger(config.log, () => [...secrets]))
  const router = createRouter()
  const tools: ToolDefinition[] = []
  const observers: Partial<Observer>[] = []
  let running: Running | null = null
  /** What `start` is at, or came to. */
  let started: Promise<void> | null = null
  let stopped: Promise<void> | null = null
  const ending = new AbortController()
  const lost = Promise.withResolvers<Error>()
  let failed = false

  const startOnce = async (): Promise<void> => {
    if (failed) {
      // Its cause may have been the configuration, or a secret of it.
      ;({ config, warnings } = await load())
      for (const secret of secretsOf(config)) secrets.add(secret)
    }
    log.info({ version: VERSION }, 'sidecar: starting')
    for (const warning of warnings) log.warn({}, renderFault(warning))
    // All the rest is loaded now: what is wrong with a configuration is said sooner.
    const { startAll } = await import('./start.ts')
    const specs = await loadSpecs(config, { events: router.events(), handle: router.handle, tools })
    for (const warning of specs.warnings) log.warn({}, warning)
    const end = ending.signal
    running = await startAll(config, specs, observers.map(guard), log, {
      hide: (secret) => secrets.add(secret),
      end,
    })
    void running.lost.then(lost.resolve)
  }

  /** A program's observer is told in the midst of a commit: what it throws must not end that. */
  const guard = (observer: Partial<Observer>): Partial<Observer> =>
    guarded(observer, (method, error) =>
      log.error(
        { method, error: thrownName(error) },
        'observe: an observer failed; no more is said of this method',
      ),
    )

  const beforeStart = (method: string): void => {
    if (started !== null) throw new OperatorError(`${method}: the sidecar was started already`)
  }

  /** A start under way is cut short first: what it opened is closed as any other. */
  const stopOnce = async (): Promise<void> => {
    ending.abort()
    await started?.catch(() => undefined)
    const last = running
    running = null
    await last?.stop()
  }

  const sidecar: Sidecar = {
    on(type, handler) {
      beforeStart('on')
      router.on(type, handler as unknown as ModuleHandler)
      return sidecar
    },
    tool(definition) {
      beforeStart('tool')
      tools.push(definition)
      return sidecar
    },
    observe(observer) {
      beforeStart('observe')
      observers.push(observer)
      return sidecar
    },
    async start() {
      if (started !== null) throw new OperatorError('this sidecar was started already')
      if (stopped !== null) throw new OperatorError('this sidecar was stopped already')
      started = startOnce()
      try {
        await started
      } catch (error) {
        // Everything was given back: once the cause is gone it may be tried again.
        started = null
        failed = true
        throw error
      }
    },
    failed: lost.promise,
    stop() {
      stopped ??= stopOnce()
      return stopped
    },
    get address() {
      return running?.address ?? { admin: null, webhooks: null }
    },
    tools: () => running?.tools ?? [],
  }
  return sidecar
}
