import type { CallbackEvent, HandlerContext, ModuleHandler } from '../../core/handler.ts'
import { isTransientId } from '../../core/transient.ts'
import { compilePatterns, TYPE_PATTERN, type EventPattern } from '../../core/pattern.ts'
import type { EventHandler, EventType } from './events.ts'
import type { ToolDefinition } from './tool.ts'

/** What a module must export that the configuration names under `module:`. */
export interface HandlerModule {
  readonly kind: 'handlers'
  /** The types and families that have a function, and `*` if everything has one. */
  readonly events: string[]
  readonly handle: ModuleHandler
  readonly tools: readonly ToolDefinition[]
}

/** Each function by its type, or a family (`turn.*`), or all (`*`). */
export type Handlers = { readonly [Type in EventType]?: EventHandler<Type> }

/** Declares the handlers and tools of a module, typed by event. */
export function defineHandlers(definition: {
  on?: Handlers
  tools?: readonly ToolDefinition[]
}): HandlerModule {
  const router = createRouter()
  for (const [type, handler] of Object.entries(definition.on ?? {})) router.on(type, handler as ModuleHandler)
  return { kind: 'handlers', events: router.events(), handle: router.handle, tools: definition.tools ?? [] }
}

/** Types are written as in the configuration (`handlers[].events`). */
const PATTERN = new RegExp(TYPE_PATTERN)

/** Calls every function that was registered for an event, in the order of registration. */
export function createRouter() {
  const routes: { type: string; pattern: EventPattern; handle: ModuleHandler }[] = []
  return {
    on(type: string, handle: ModuleHandler): void {
      if (!PATTERN.test(type))
        throw new TypeError(`on(${JSON.stringify(type)}): give *, a family such as turn.*, or a whole type`)
      routes.push({ type, pattern: compilePatterns([type]), handle })
    },
    events: (): string[] => [...new Set(routes.map(({ type }) => type))],
    async handle(event: CallbackEvent, context: HandlerContext): Promise<unknown> {
      let answer: unknown
      for (const { pattern, handle } of routes) {
        const wanted = isTransientId(event.id)
          ? pattern.wantsTransient(event.type)
          : pattern.wants(event.type)
        if (wanted) answer = (await handle(event, context)) ?? answer
      }
      return answer
    },
  }
}
