/// <reference types="node" preserve="true" />
/** The face of the library. Importing it opens no socket, starts no timer and installs no process-wide hook. */
export { createSidecar, type DeclaredTool, type Sidecar, type SidecarOptions } from './sidecar.ts'
export type { Address } from './sidecar/start.ts'
export { defineHandlers, type HandlerModule, type Handlers } from './library/handlers.ts'
export { tool, type ToolContext, type ToolDefinition, type ToolOptions } from './library/tool.ts'
export {
  CallbackRejected,
  verifyCallback,
  verifyCallbacks,
  verifyToolCall,
  type VerifyOptions,
} from './library/verify.ts'
export { isFact } from './library/events.ts'
export { DeadLetter, OperatorError } from './core/errors.ts'
export { ConfigError } from './config/fault.ts'
export type { ConfigInput } from './config/schema.ts'
export type { HandlerContext, HandlerLog } from './core/handler.ts'
export type { Observer } from './core/observer.ts'
export type * from './library/events.ts'
export type * from './library/resource.ts'
export type { Fields, Payload } from './library/payload.ts'
