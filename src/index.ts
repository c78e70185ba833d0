/// <reference types="node" preserve="true" />
/**
 * The entry point of the library. Importing it opens no socket, starts no timer and installs no
 * process-wide hook.
 */
export { createSidecar, type DeclaredTool, type Sidecar, type SidecarOptions } from './sidecar/sidecar.ts'
export type { Address } from './sidecar/admin/listener.ts'
export { defineHandlers, type HandlerModule, type Handlers } from './sidecar/library/handlers.ts'
export { tool, type ToolContext, type ToolDefinition, type ToolOptions } from './sidecar/library/tool.ts'
export {
  CallbackRejected,
  verifyCallback,
  verifyCallbacks,
  verifyToolCall,
  type VerifyOptions,
} from './sidecar/library/verify.ts'
export { isFact } from './sidecar/library/events.ts'
export { DeadLetter } from './core/errors.ts'
export { OperatorError } from './std/errors.ts'
export { ConfigError } from './sidecar/config/fault.ts'
export type { ConfigInput } from './sidecar/config/schema.ts'
export type { HandlerContext, HandlerLog } from './core/handler.ts'
export type { Observer } from './core/observer.ts'
export type * from './sidecar/library/events.ts'
export type * from './sidecar/library/resource.ts'
export type { Fields, Payload } from './sidecar/library/payload.ts'
