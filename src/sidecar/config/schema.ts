import { Type, type Static, type TSchema } from 'typebox'
import { polling, stream, webhooks } from './schema/channel.ts'
import { handler } from './schema/handler.ts'
import { admin, log, store } from './schema/process.ts'
import { scope } from './schema/scope.ts'
import { section } from './schema/section.ts'
import { service } from './schema/service.ts'
import { tool } from './schema/tool.ts'

/**
 * The single definition of the configuration: the types, the validation and the JSON Schema for
 * editors come from these schemas (config/README.md, Configuration).
 *
 * Four annotations go beyond JSON Schema:
 * - `format` names a check of checks.ts,
 * - `durationRange` is the least and the greatest duration accepted,
 * - `writeOnly` marks a secret: its value is never shown,
 * - `errorMessage` describes a valid value to people.
 *
 * A key with a `default` may be omitted in the file; it is always present after the file was read.
 */

const settings = section(
  {
    service,
    store,
    scope,
    stream,
    webhooks,
    polling,
    handlers: Type.Array(handler, { description: 'The receivers of facts.', maxItems: 200, default: [] }),
    tools: Type.Array(tool, {
      description: 'Function tools that the sidecar answers; the service allows 32 on a session.',
      maxItems: 200,
      default: [],
    }),
    admin,
    log,
  },
  {
    title: 'agent-session-sidecar',
    description:
      'Configuration of the sidecar. ${VAR}, ${VAR:-default} and ${VAR:?message} are expanded in string values; ' +
      'every key can be overridden by SIDECAR_ + its path in upper case joined by __. Durations: 250ms, 30s, 5m, 9h, 7d.',
  },
)

/** The keys as in the file, every default filled in. */
export type Settings = Static<typeof settings>

type HandlerSettings = Settings['handlers'][number]
type ToolSettings = Settings['tools'][number]

type Some<T, K extends keyof T> = Partial<T> & Pick<T, K>

export type HandlerInput = Some<Omit<HandlerSettings, 'batch' | 'retry'>, 'name'> & {
  batch?: Partial<HandlerSettings['batch']>
  retry?: Partial<HandlerSettings['retry']>
}

export type ToolInput = Some<Omit<ToolSettings, 'retry'>, 'name'> & {
  retry?: Partial<ToolSettings['retry']>
}

/** The keys as in the file, as a person writes them: keys with a default may be omitted. */
export interface ConfigInput {
  service: Some<Settings['service'], 'base_url'>
  store?: Partial<Settings['store']>
  scope?: Partial<Settings['scope']>
  stream?: Partial<Settings['stream']>
  webhooks?: Partial<Settings['webhooks']>
  polling?: Partial<Settings['polling']>
  handlers?: HandlerInput[]
  tools?: ToolInput[]
  admin?: Partial<Settings['admin']>
  log?: Partial<Settings['log']>
}

/** JSON Schema 2020-12 of the file, for editors and other checkers. */
export function jsonSchema(): TSchema {
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...settings }
}
