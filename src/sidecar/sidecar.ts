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
import { secretsIn } from './config/secrets.ts'
import { loadSpecs } from './specs.ts'
import type { Address } from './admin/listener.ts'
import type { Running } from './start.ts'
import { VERSION } from './version.ts'

export interface SidecarOptions {
  /** A file, or the same keys as an object. */
  config: string | ConfigInput
  /**
   * Environment for `${VAR}` and `SIDECAR_…`. Default: that of the process if `config` is a file, none if it is an
   * object.
   */
  env?: Readonly<Record<string, string | undefined>>
  /** Receives the log. Default: standard error, as configured. */
  log?: Log
}

/** An entry of the `tools` array of a session. */
export interface DeclaredTool {
  type: 'function'
  name: string
  description: string
  parameters: JsonObject
  /** Present when the tool has a `deadline`. */
  timeout_seconds?: number
}

/** A sidecar in this process (src/sidecar/README.md, As a library). */
export interface Sidecar {
  /** Calls `handler` for facts of a type, of a family (`turn.*`) or all (`*`). Before `start`. */
  on<Type extends EventType>(type: Type, handler: EventHandler<Type>): Sidecar
  /** Adds a function tool. Before `start`. */
  tool(definition: ToolDefinition): Sidecar
  /** Reports every event of the sidecar to `observer`. Before `start`. */
  observe(observer: Partial<Observer>): Sidecar
  /**
   * Opens the store and the listeners, and follows the service.
   * @throws {OperatorError} with exit code 3 when the service rejects the token, 1 or 2 when something cannot be used.
   */
  start(): Promise<void>
  /**
   * Resolves when the sidecar cannot continue: another process has taken over its store, or the files of the store were
   * deleted or replaced. It accepts nothing more and must be stopped; another sidecar may then be started on the store.
   */
  readonly failed: Promise<Error>
  /** Stops claiming work, waits for work in progress and closes. It may be called again. */
  stop(): Promise<void>
  /** The addresses of the listeners; available after `start`. */
  readonly address: { admin: Address | null; webhooks: Address | null }
  /** The `tools` array to declare on a session; available after `start`. */
  tools(): DeclaredTool[]
}

/** Loads the configuration; opens nothing before `start`. @throws {ConfigError} with all problems at once. */
export async function createSidecar(options: SidecarOptions): Promise<Sidecar> {
  const load = () =>
    typeof options.config === 'string'
      ? loadConfig(options.config, options.env ?? process.env, Date.now())
      : resolveConfig(options.config, { env: options.env ?? {}, now: Date.now() })
  let { config, warnings } = await load()
  const secrets = new Set(secretsIn(config))
  const log = options.log ?? asLog(await createLogger(config.log, () => [...secrets]))
  const router = createRouter()
  const tools: ToolDefinition[] = []
  const observers: Partial<Observer>[] = []
  let running: Running | null = null
  /** The promise of the last `start`; null: not started. */
  let started: Promise<void> | null = null
  let stopped: Promise<void> | null = null
  const ending = new AbortController()
  const lost = Promise.withResolvers<Error>()
  let failed = false

  const startOnce = async (): Promise<void> => {
    if (failed) {
      // The configuration, or a secret in it, may have caused the last failure: it is loaded again.
      ;({ config, warnings } = await load())
      for (const secret of secretsIn(config)) secrets.add(secret)
    }
    log.info({ version: VERSION }, 'sidecar: starting')
    for (const warning of warnings) log.warn({}, renderFault(warning))
    // The other modules are loaded only now, so that problems in the configuration are reported sooner.
    const { startAll } = await import('./start.ts')
    const specs = await loadSpecs(config, { events: router.events(), handle: router.handle, tools })
    for (const warning of specs.warnings) log.warn({}, warning)
    running = await startAll(config, specs, observers.map(guard), {
      log,
      hide: (secret) => secrets.add(secret),
      end: ending.signal,
    })
    void running.lost.then(lost.resolve)
  }

  /** Guards an observer of the program: it is called during a commit, which its exceptions must not abort. */
  const guard = (observer: Partial<Observer>): Partial<Observer> =>
    guarded(observer, (method, error) =>
      log.error(
        { method, error: thrownName(error) },
        'observe: an observer failed; later failures of this method are not logged',
      ),
    )

  const beforeStart = (method: string): void => {
    if (started !== null) throw new OperatorError(`${method}: the sidecar was started already`)
  }

  /** Aborts a start in progress first: what it opened is closed in the usual way. */
  const stopOnce = async (): Promise<void> => {
    ending.abort()
    await started?.catch(() => undefined)
    const last = running
    running = null
    if (last === null) return
    log.info({}, 'sidecar: stopping; work under way is finished first')
    await last.stop()
    log.info({}, 'sidecar: stopped')
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
        // Everything that the failed start opened is closed: `start` may be called again.
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
