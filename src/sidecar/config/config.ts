import type { HandlerSpec } from '../../core/handler.ts'
import type { JsonObject } from '../../std/json.ts'
import type { Scope } from '../../core/scope.ts'
import type { ToolSpec } from '../../core/tool.ts'
import type { ListenAddress } from './listen.ts'
import type { Settings } from './schema.ts'

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
    /** The page of the service's Console on which people answer; may contain `{session_id}`. */
    consoleUrl: string
    /** What is not set, discovery finds. */
    routes: Settings['service']['routes']
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

export type StoreUrl =
  /**
   * `former`: where earlier versions would have put the file, since they resolved a relative path against the working
   * directory. Empty for an absolute path.
   */
  | { kind: 'sqlite'; path: string; former: string[] }
  /** `url`: complete, without password and parameters, so that it may be shown. `tls` null: unencrypted. */
  | { kind: 'postgres'; url: string; password: string | null; tls: DatabaseTls | null }

export interface DatabaseTls {
  /** What is checked of the server's certificate. `authority`: who issued it; `name`: that, and the host name in it. */
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
  /** null: the module defines it. */
  description: string | null
  parameters: JsonObject | null
}

/** The part of the configuration that a secret belongs to. */
export type SecretOwner =
  | { of: 'service.token' }
  | { of: 'admin.token' }
  | { of: 'store.password' }
  | { of: 'webhooks.secrets' }
  | { of: 'handler' | 'tool'; name: string }

/**
 * The secrets of one owner, in the order of the configuration. At least one part is a file, so they can change while
 * the program runs.
 */
export interface SecretSource {
  owner: SecretOwner
  parts: SecretPart[]
  /** The secrets as last read. */
  secrets: string[]
}

export type SecretPart =
  | { kind: 'value'; value: string }
  /** `lines`: the file holds one secret per line; otherwise it holds a single secret. */
  | { kind: 'file'; file: string; lines: boolean; format: 'token' | 'callback-secret' | 'any' }
