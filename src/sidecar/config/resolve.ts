import { existsSync } from 'node:fs'
import path from 'node:path'
import { parseDuration } from '../../std/duration.ts'
import { messageOf } from '../../std/errors.ts'
import type { JsonObject } from '../../std/json.ts'
import type { RetrySpec } from '../../core/handler.ts'
import type { Scope } from '../../core/scope.ts'
import type {
  Config,
  HandlerConfig,
  SecretOwner,
  SecretPart,
  SecretSource,
  StoreUrl,
  TargetConfig,
  ToolConfig,
} from './config.ts'
import { databaseOf } from './database.ts'
import type { Environment } from './expand.ts'
import type { Path } from './fault.ts'
import { parseListen, type ListenAddress } from './listen.ts'
import type { Settings } from './schema.ts'
import { readParts } from './secrets.ts'
import type { Blame } from './tree.ts'

/** The directories that relative paths start from. */
export interface Folders {
  /** For modules and secret files. */
  base: string
  /**
   * For the store. `base`: its own folder; null: the `base` above. `former`: the folders that earlier versions used.
   */
  store: { base: string | null; former: readonly string[] }
}

type FileFormat = Extract<SecretPart, { kind: 'file' }>['format']

/**
 * Turns valid settings into the form that the program uses: milliseconds, absolute paths, secrets read from their
 * files. A file that cannot be read is a fault. `env`: has the variables `PG…` of PostgreSQL.
 */
export async function resolve(
  settings: Settings,
  folders: Folders,
  env: Environment,
  blame: Blame,
): Promise<Config> {
  const { base } = folders
  const secretFiles: SecretSource[] = []

  async function secretsOf(
    owner: SecretOwner,
    at: Path,
    sources: Sources,
    format: FileFormat,
  ): Promise<string[]> {
    const parts = partsOf(sources, base, format)
    if (!parts.some((part) => part.kind === 'file'))
      return parts.flatMap((part) => (part.kind === 'value' ? part.value : []))
    try {
      const secrets = await readParts(parts)
      secretFiles.push({ owner, parts, secrets })
      return secrets
    } catch (error) {
      const key = Object.keys(sources).find((name) => name.endsWith('_file')) ?? ''
      blame([...at, key], messageOf(error))
      return []
    }
  }

  async function targetOf(kind: 'handler' | 'tool', index: number): Promise<TargetConfig> {
    const list = `${kind}s` as const
    const entry = settings[list][index]
    if (entry?.url !== undefined) {
      const { name, secret, secret_file, secrets, secrets_file } = entry
      const sources = given({ secret, secret_file, secrets, secrets_file })
      const owner = { of: kind, name }
      return {
        kind: 'http',
        url: entry.url,
        secrets: await secretsOf(owner, [list, index], sources, 'callback-secret'),
      }
    }
    const file = path.resolve(base, entry?.module ?? '')
    if (!existsSync(file)) blame([list, index, 'module'], `${file} does not exist`)
    return { kind: 'module', path: file }
  }

  const { service, store, scope, stream, webhooks, polling, admin, log } = settings
  const serviceToken = given({ token: service.token, token_file: service.token_file })
  const adminToken = given({ token: admin.token, token_file: admin.token_file })
  const webhookSecrets = given({ secrets: webhooks.secrets, secrets_file: webhooks.secrets_file })
  const [token = ''] = await secretsOf({ of: 'service.token' }, ['service'], serviceToken, 'token')
  const [bearer = null] = await secretsOf({ of: 'admin.token' }, ['admin'], adminToken, 'token')

  const databasePassword = given({ password: store.password, password_file: store.password_file })
  const [password = null] = await secretsOf({ of: 'store.password' }, ['store'], databasePassword, 'any')

  const handlers: HandlerConfig[] = []
  for (const [index, entry] of settings.handlers.entries()) {
    handlers.push({
      name: entry.name,
      target: await targetOf('handler', index),
      events: entry.events,
      format: entry.format,
      ordered: entry.ordered,
      concurrency: entry.concurrency,
      batch: { max: entry.batch.max, wait: ms(entry.batch.wait) },
      timeout: ms(entry.timeout),
      retry: retryOf(entry.retry),
    })
  }

  const tools: ToolConfig[] = []
  for (const [index, entry] of settings.tools.entries()) {
    const inModule = entry.module !== undefined
    tools.push({
      name: entry.name,
      target: await targetOf('tool', index),
      description: entry.description ?? (inModule ? null : ''),
      parameters:
        (entry.parameters as JsonObject | undefined) ??
        (inModule ? null : { type: 'object', properties: {} }),
      timeout: ms(entry.timeout),
      concurrency: entry.concurrency,
      retry: retryOf(entry.retry),
      afterCrash: entry.after_crash,
      error: entry.error,
      onNotDelivered: entry.on_not_delivered,
      deadline: entry.deadline === undefined ? null : ms(entry.deadline),
    })
  }

  const expiry = service.token_expires_at
  return {
    service: {
      baseUrl: service.base_url.replace(/\/+$/, ''),
      token,
      tokenExpiresAt: expiry === undefined ? null : Date.parse(expiry),
      sessionSlots: service.session_slots,
      consoleUrl: service.console_url ?? new URL(service.base_url).origin,
      routes: service.routes,
    },
    store: {
      url: store.url.startsWith('sqlite:')
        ? fileOf(store.url, folders)
        : await databaseOf({ url: store.url, password, base, env }, (text) => blame(['store', 'url'], text)),
      retention: ms(store.retention),
    },
    scope: scopeOf(scope),
    stream: { enabled: stream.enabled, startFrom: String(stream.start_from) },
    webhooks: {
      enabled: webhooks.enabled,
      listen: address(webhooks.listen),
      path: webhooks.path,
      publicUrl: webhooks.public_url ?? null,
      secrets: await secretsOf({ of: 'webhooks.secrets' }, ['webhooks'], webhookSecrets, 'any'),
      tolerance: ms(webhooks.tolerance),
    },
    polling: { enabled: polling.enabled, interval: ms(polling.interval), sweep: ms(polling.sweep) },
    handlers,
    tools,
    admin: { listen: address(admin.listen), token: bearer },
    log,
    secretFiles,
  }
}

/** The keys of a section that may hold its secrets, in the order in which they count. */
type Sources = Record<string, string | string[]>

function given(sources: Record<string, string | string[] | undefined>): Sources {
  return Object.fromEntries(
    Object.entries(sources).filter((entry): entry is [string, string | string[]] => entry[1] !== undefined),
  )
}

function partsOf(sources: Sources, base: string, format: FileFormat): SecretPart[] {
  return Object.entries(sources).flatMap(([key, value]): SecretPart[] => {
    if (Array.isArray(value)) return value.map((one) => ({ kind: 'value', value: one }))
    if (!key.endsWith('_file')) return [{ kind: 'value', value }]
    return [{ kind: 'file', file: path.resolve(base, value), lines: key === 'secrets_file', format }]
  })
}

function fileOf(url: string, { base, store }: Folders): StoreUrl {
  const file = url.slice('sqlite:'.length).replace(/^\/\//, '')
  if (file === ':memory:') return { kind: 'sqlite', path: file, former: [] }
  const place = path.resolve(store.base ?? base, file)
  const former = new Set(store.former.map((folder) => path.resolve(folder, file)))
  former.delete(place)
  return { kind: 'sqlite', path: place, former: [...former] }
}

function scopeOf({ metadata, created_by_token: tokens = [] }: Settings['scope']): Scope | null {
  const createdByToken = typeof tokens === 'string' ? [tokens] : tokens
  return createdByToken.length + Object.keys(metadata).length === 0 ? null : { metadata, createdByToken }
}

function retryOf(retry: Settings['tools'][number]['retry']): RetrySpec {
  return { attempts: retry.attempts, base: ms(retry.base), max: ms(retry.max) }
}

/** The schema has checked the format of this text and of the next: one that cannot be parsed is a bug. */
function ms(duration: string): number {
  const value = parseDuration(duration)
  if (value === null) throw new TypeError(`not a duration: ${duration}`)
  return value
}

function address(text: string): ListenAddress {
  const listen = parseListen(text)
  if (listen === null) throw new TypeError(`not HOST:PORT: ${text}`)
  return listen
}
