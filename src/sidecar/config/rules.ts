import { doubtAbout } from '../../core/event-type.ts'
import { isObject, type Json, type JsonObject } from '../../std/json.ts'
import { callbackKey } from '../../std/signature.ts'
import type { Config } from './config.ts'
import { cautionsOf } from './database.ts'
import { isLoopback, parseListen } from './listen.ts'
import type { Settings } from './schema.ts'
import type { Blame } from './tree.ts'
import { schemaFault } from './parameters.ts'

/**
 * Rules that concern several keys, such as `token` and `token_file`, which a schema cannot express well. They also run
 * on a tree that failed the schema, so that all faults are reported together: no rule relies on the shape of the tree.
 */
export async function applyRules(tree: Json | undefined, blame: Blame): Promise<void> {
  if (!isObject(tree)) return
  const service = objectAt(tree, 'service')
  if (!has(service, 'token') && !has(service, 'token_file')) {
    blame(['service', 'token'], 'is required: the access token, or token_file with its path')
  }
  oneOfTwo(service, 'token', ['service'], blame)
  oneOfTwo(objectAt(tree, 'admin'), 'token', ['admin'], blame)
  const store = objectAt(tree, 'store')
  oneOfTwo(store, 'password', ['store'], blame)
  const password = ['password', 'password_file'].find((key) => has(store, key))
  const { url = 'sqlite:' } = store
  if (password !== undefined && typeof url === 'string' && url.startsWith('sqlite:'))
    blame(['store', password], 'has no effect: only a database of PostgreSQL has a password')
  const routes = objectAt(service, 'routes')
  if (isObject(routes['message_body']) && !JSON.stringify(routes['message_body']).includes('{{text}}')) {
    blame(['service', 'routes', 'message_body'], 'must hold {{text}} where the text of the message goes')
  }
  channelRules(tree, blame)
  for (const kind of ['handlers', 'tools'] as const) {
    const names = new Map<string, number>()
    for (const [index, entry] of entriesOf(tree[kind])) {
      targetRules(kind, index, entry, blame)
      const fault = await schemaFault(entry['parameters'])
      if (fault !== null) blame([kind, index, 'parameters'], fault)
      const name = entry['name']
      if (typeof name !== 'string') continue
      const first = names.get(name)
      if (first === undefined) names.set(name, index)
      else blame([kind, index, 'name'], `"${name}" is the name of ${kind}[${first}] already`)
    }
  }
}

function channelRules(tree: JsonObject, blame: Blame): void {
  const channels = ['stream', 'webhooks', 'polling']
  if (channels.every((name) => objectAt(tree, name)['enabled'] === false)) {
    blame(['stream', 'enabled'], 'at least one of stream, webhooks and polling must be enabled')
  }
  const webhooks = objectAt(tree, 'webhooks')
  const secrets = webhooks['secrets']
  const listed = Array.isArray(secrets) && secrets.length > 0
  if (listed && has(webhooks, 'secrets_file')) {
    blame(['webhooks', 'secrets_file'], 'give either secrets or secrets_file')
  }
  if (
    webhooks['enabled'] === true &&
    !has(webhooks, 'public_url') &&
    !listed &&
    !has(webhooks, 'secrets_file')
  ) {
    blame(
      ['webhooks', 'enabled'],
      'needs public_url (the sidecar then creates the subscription) or secrets (of a subscription that you created)',
    )
  }
}

function targetRules(kind: 'handlers' | 'tools', index: number, entry: JsonObject, blame: Blame): void {
  if (!has(entry, 'url') && !has(entry, 'module')) blame([kind, index], 'needs a url or a module')
  if (has(entry, 'url') && has(entry, 'module')) blame([kind, index, 'module'], 'give either url or module')
  oneOfTwo(entry, 'secret', [kind, index], blame)
  oneOfTwo(entry, 'secrets', [kind, index], blame)
  if (has(entry, 'module')) {
    const signing = ['secret', 'secret_file', 'secrets', 'secrets_file'].find((key) => has(entry, key))
    if (signing !== undefined)
      blame([kind, index, signing], 'has no effect: a module is called in this process, without a request')
  }
}

function oneOfTwo(section: JsonObject, key: string, path: (string | number)[], blame: Blame): void {
  if (has(section, key) && has(section, `${key}_file`)) {
    blame([...path, `${key}_file`], `give either ${key} or ${key}_file`)
  }
}

/** The Standard Webhooks specification asks for keys of 24 to 64 bytes. */
const KEY = 24
/** An admin token with this many random characters cannot be guessed. */
const ADMIN_TOKEN = 16

/** Warnings about allowed but unsafe settings. `config`: has the secrets that were read from files. */
export function cautions(
  settings: Settings,
  config: Pick<Config, 'admin' | 'handlers' | 'store' | 'tools'>,
  now: number,
  warn: Blame,
): void {
  const base = new URL(settings.service.base_url)
  if (base.protocol === 'http:' && !isLoopback(base.hostname)) {
    warn(['service', 'base_url'], 'is http: the token travels unencrypted')
  }
  const expiry = settings.service.token_expires_at
  if (expiry !== undefined && Date.parse(expiry) < now) {
    warn(['service', 'token_expires_at'], `is in the past: the service will reject the token (${expiry})`)
  }
  for (const kind of ['handlers', 'tools'] as const) {
    for (const [index, entry] of settings[kind].entries()) {
      const signed = entry.secret ?? entry.secret_file ?? entry.secrets_file ?? entry.secrets?.[0]
      if (entry.url === undefined || isLoopback(new URL(entry.url).hostname) || signed !== undefined) continue
      warn(
        [kind, index, 'url'],
        'is not on loopback, and requests are not signed: anyone can forge them; set secret',
      )
    }
  }
  for (const kind of ['handlers', 'tools'] as const) {
    for (const [index, { target }] of config[kind].entries()) {
      const secrets = target?.kind === 'http' ? target.secrets : []
      if (secrets.every((secret) => callbackKey(secret).length >= KEY)) continue
      const entry = settings[kind][index] ?? {}
      const key =
        ['secret', 'secret_file', 'secrets', 'secrets_file'].find((name) => name in entry) ?? 'secret'
      warn(
        [kind, index, key],
        `has a secret of fewer than ${KEY} bytes, which can be guessed: use 32 random bytes`,
      )
    }
  }
  for (const [index, { events }] of settings.handlers.entries()) {
    for (const [place, type] of events.entries()) {
      const doubt = doubtAbout(type)
      if (doubt !== null) warn(['handlers', index, 'events', place], `"${type}" ${doubt}`)
    }
  }
  for (const caution of cautionsOf(config.store.url, settings.store.url)) warn(['store', 'url'], caution)
  const { admin } = settings
  if (!isLoopback(parseListen(admin.listen)?.host ?? '') && (admin.token ?? admin.token_file) === undefined) {
    warn(
      ['admin', 'listen'],
      'is not on loopback, and admin.token is missing: /api and the console are turned off',
    )
  }
  const adminToken = config.admin.token
  if (adminToken !== null && adminToken.length < ADMIN_TOKEN) {
    warn(
      ['admin', admin.token === undefined ? 'token_file' : 'token'],
      `has fewer than ${ADMIN_TOKEN} characters and can be guessed: use a random one (openssl rand -hex 16)`,
    )
  }
}

function objectAt(container: JsonObject, key: string): JsonObject {
  const value = container[key]
  return isObject(value) ? value : {}
}

function has(container: JsonObject, key: string): boolean {
  return container[key] !== undefined
}

function* entriesOf(list: Json | undefined): Generator<[number, JsonObject]> {
  if (!Array.isArray(list)) return
  for (const [index, entry] of list.entries()) {
    if (isObject(entry)) yield [index, entry]
  }
}
