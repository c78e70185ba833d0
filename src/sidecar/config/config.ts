import type { HandlerSpec } from '../../core/handler.ts'
import type { JsonObject } from '../../std/json.ts'
import type { Scope } from '../../core/scope.ts'
import type { ToolSpec } from '../../core/tool.ts'
import type { ListenAddress } from './listen.ts'

/** The configuration as the program uses it: every default filled in, durations in milliseconds, secrets read. */
export interface Config {
  service: {
    /** Without a slash at the end. */
    baseUrl: string
    token: string
    /** Milliseconds since the epoch. */
    tokenExpiresAt: number | null
    /** Sessions that the organization may have at once. */
    sessionSlots: number
    /** The page where people answer; may contain `{session_id}`. */
    consoleUrl: string
    routes: RouteOverrides
  }
  store: { url: StoreUrl; retention: number }
  /** null: every session is ours. */
  scope: Scope | null
  stream: {
    enabled: boolean
    /** `now`, `beginning`, or the digits of a seq. */
    startFrom: string
  }
  webhooks: {
    enabled: boolean
    listen: ListenAddress
    path: string
    publicUrl: string | null
    secrets: string[]
    tolerance: number
  }
  polling: { enabled: boolean; interval: number; sweep: number }
  handlers: HandlerConfig[]
  tools: ToolConfig[]
  admin: { listen: ListenAddress; token: string | null }
  log: { level: 'debug' | 'info' | 'warn' | 'error' | 'silent'; format: 'auto' | 'json' | 'pretty' }
  /** The secrets above that came from files, for `watchSecrets`. */
  secretFiles: SecretSource[]
}

/** Paths are templates as in the service's document: `/v1/sessions/{session_id}/answers`. null: found by discovery. */
export interface RouteOverrides {
  answerPath: string | null
  messagePath: string | null
  /** A body in which `{{text}}` is replaced by the text. */
  messageBody: JsonObject | null
  turnPath: string | null
  sessionStreamPath: string | null
  idempotencyHeader: string | null
}

export type StoreUrl =
  /**
   * `former`: the paths used by versions that resolved a relative path against the working
   * directory; empty for an absolute one.
   */
  | { kind: 'sqlite'; path: string; former: string[] }
  /** `url`: complete, without password and parameters, so that it may be shown. `tls` null: unencrypted. */
  | { kind: 'postgres'; url: string; password: string | null; tls: DatabaseTls | null }

export interface DatabaseTls {
  /** What of the server's certificate is checked; `name`: also the authority. */
  checked: 'nothing' | 'authority' | 'name'
  /** PEM. */
  ca: string | null
  cert: string | null
  key: string | null
}

export type TargetConfig =
  | { kind: 'http'; url: string; secrets: string[] }
  /** An absolute path, not imported yet. */
  | { kind: 'module'; path: string }

export interface HandlerConfig extends Omit<HandlerSpec, 'target'> {
  target: TargetConfig
}

export interface ToolConfig extends Omit<ToolSpec, 'target' | 'description' | 'parameters'> {
  target: TargetConfig
  /** null: as the module defines. */
  description: string | null
  parameters: JsonObject | null
}

/** The owner of the secret. */
export type SecretOwner =
  | { of: 'service.token' }
  | { of: 'admin.token' }
  | { of: 'store.password' }
  | { of: 'webhooks.secrets' }
  | { of: 'handler' | 'tool'; name: string }

/** An owner's secrets, part by part in their order, at least one of them a file. */
export interface SecretSource {
  owner: SecretOwner
  parts: SecretPart[]
  /** The secrets as last read. */
  secrets: string[]
}

export type SecretPart =
  | { kind: 'value'; value: string }
  /** `lines`: one secret a line; otherwise the file holds one. */
  | { kind: 'file'; file: string; lines: boolean; format: 'token' | 'callback-secret' | 'any' }
