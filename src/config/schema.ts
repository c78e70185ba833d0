import { Type, type Static, type TObject, type TProperties, type TSchema } from 'typebox'

/**
 * The configuration, said once: these schemas are the types, the validation and the JSON Schema that editors read
 * (product.md, Configuration).
 *
 * Four annotations go beyond JSON Schema:
 * - `format` names a check of checks.ts,
 * - `durationRange` is the least and the greatest duration accepted,
 * - `writeOnly` marks a secret: its value is never shown,
 * - `errorMessage` says what a value must be, to people.
 *
 * A key with a `default` is always there once a file was read; in the file it may be left out.
 */

/** A closed object. Keys that have a default may be left out. */
function section<P extends TProperties>(properties: P, options: object = {}): TObject<P> {
  const schema = Type.Object(properties, { additionalProperties: false, ...options })
  const needed = Object.keys(properties).filter((key) => {
    const property = properties[key] ?? {}
    return !('default' in property || Type.IsOptional(property))
  })
  return Object.assign(schema, { required: needed })
}

const NAME = {
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  errorMessage: '1 to 64 letters, digits, "_" and "-"',
}

const duration = (description: string, range: [string, string], options: { default: string }) =>
  Type.String({
    description,
    format: 'duration',
    durationRange: range,
    examples: ['250ms', '30s', '5m'],
    ...options,
  })

const flag = (description: string, value: boolean) => Type.Boolean({ description, default: value })

const secret = (description: string, options: object = {}) =>
  Type.Optional(Type.String({ description, writeOnly: true, ...options }))

const secretFile = (what: string) =>
  Type.Optional(
    Type.String({
      description: `A file that holds ${what}, relative to this file; read again when it changes.`,
      examples: ['/run/secrets/token'],
    }),
  )

const retry = (attempts: number, base: string, max: string, description: string) =>
  section(
    {
      attempts: Type.Integer({
        description: 'Attempts in all, the first included.',
        minimum: 1,
        maximum: 1000,
        default: attempts,
      }),
      base: duration(
        'Ceiling of the wait before the second attempt; it doubles with each one.',
        ['1ms', '1h'],
        { default: base },
      ),
      max: duration('Greatest ceiling of a wait.', ['1ms', '7d'], { default: max }),
    },
    { description, default: {} },
  )

/** What handlers and tools have in common: where they are and how we sign. */
const target = (kind: 'handler' | 'tool', example: string) => ({
  url: Type.Optional(
    Type.String({
      description: `Where the ${kind} listens, over HTTP. Exactly one of url and module.`,
      format: 'http-url',
      examples: [example],
    }),
  ),
  module: Type.Optional(
    Type.String({
      description: `A module of this machine that exports defineHandlers(...), relative to this file.`,
      minLength: 1,
      examples: ['./handlers.ts'],
    }),
  ),
  secret: secret(
    'Standard Webhooks secret that signs what we send. Without one it is unsigned, which is warned about off loopback.',
    { format: 'callback-secret', examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] },
  ),
  secret_file: secretFile('the secret'),
  secrets: Type.Optional(
    Type.Array(Type.String({ format: 'callback-secret', writeOnly: true }), {
      description: 'Several secrets while rotating, the newest first; every one signs.',
      maxItems: 8,
    }),
  ),
  secrets_file: secretFile('the secrets, one a line, the newest first'),
})

const exactlyOneTarget = { oneOf: [{ required: ['url'] }, { required: ['module'] }] }

const handler = section(
  {
    name: Type.String({ description: 'Names the handler in commands, metrics and callbacks.', ...NAME }),
    ...target('handler', 'http://127.0.0.1:3000/agent-events'),
    events: Type.Array(
      Type.String({
        pattern: '^(\\*|[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*(\\.\\*)?)$',
        errorMessage: '"*", a whole type such as "turn.settled", or a prefix such as "turn.*"',
      }),
      {
        description:
          'Types of facts to deliver: "*", a prefix such as "turn.*", or a whole type. Transient types only when named.',
        minItems: 1,
        maxItems: 200,
        default: ['*'],
        examples: [['turn.*', 'session.*', 'action.*']],
      },
    ),
    format: Type.Union([Type.Literal('standard'), Type.Literal('cloudevents')], {
      description: 'Form of the body: ours, or CloudEvents 1.0 structured JSON.',
      default: 'standard',
    }),
    ordered: flag('Per session: one at a time, in order.', true),
    concurrency: Type.Integer({
      description: 'Callbacks under way at once, over all sessions.',
      minimum: 1,
      maximum: 1024,
      default: 16,
    }),
    batch: section(
      {
        max: Type.Integer({
          description: 'Facts in one request; above 1 the body is a JSON array.',
          minimum: 1,
          maximum: 500,
          default: 1,
        }),
        wait: duration('How long to wait for a batch to fill.', ['0', '5m'], { default: '0ms' }),
      },
      { description: 'Several facts in one request.', default: {} },
    ),
    timeout: duration('For the whole exchange, connecting included.', ['1ms', '1h'], { default: '15s' }),
    retry: retry(
      16,
      '1s',
      '1h',
      'Attempts that the handler failed, with full jitter; a handler that is away uses up none.',
    ),
  },
  { description: 'An application that is told of facts.', ...exactlyOneTarget },
)

const tool = section(
  {
    name: Type.String({ description: 'The name of the function as declared on the session.', ...NAME }),
    description: Type.Optional(Type.String({ description: 'What the model is told the tool does.' })),
    parameters: Type.Optional(
      Type.Unsafe<Record<string, unknown>>({
        type: 'object',
        description: 'JSON Schema of the arguments, as declared on the session.',
        examples: [{ type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] }],
      }),
    ),
    ...target('tool', 'http://127.0.0.1:3000/tools/lookup_order'),
    timeout: duration('For one run of the tool.', ['1ms', '2h'], { default: '30s' }),
    concurrency: Type.Integer({
      description: 'Runs under way at once, over all sessions.',
      minimum: 1,
      maximum: 1024,
      default: 8,
    }),
    retry: retry(3, '250ms', '5s', 'Runs that failed, within the deadline of the call.'),
    after_crash: Type.Union([Type.Literal('retry'), Type.Literal('fail')], {
      description:
        'A call that was running when the sidecar crashed: run again with the same idempotency key, or post the error.',
      default: 'retry',
    }),
    error: Type.String({
      description: 'The only error text that the model ever sees.',
      minLength: 1,
      maxLength: 4000,
      default: 'The tool could not complete this request.',
    }),
    on_not_delivered: Type.Union([Type.Literal('resend'), Type.Literal('report')], {
      description:
        'An answer that the sandbox no longer waited for: send a fresh turn with the same information, or only report it.',
      default: 'resend',
    }),
  },
  { description: 'A function tool that the sidecar answers.', ...exactlyOneTarget },
)

const path = (description: string, example: string) =>
  Type.Optional(
    Type.String({
      description,
      pattern: '^/',
      errorMessage: 'a path that begins with "/"',
      examples: [example],
    }),
  )

const service = section(
  {
    base_url: Type.String({
      description: 'Base address of the Agent Session Service, without /v1.',
      format: 'base-url',
      examples: ['https://agents.example.com'],
    }),
    token: secret('Access token of the service.', { format: 'token', examples: ['${SERVICE_TOKEN}'] }),
    token_file: secretFile('the access token'),
    token_expires_at: Type.Optional(
      Type.String({
        description: 'When the token expires; the service does not report it. Feeds a metric and a warning.',
        format: 'date-or-time',
        examples: ['2027-01-31'],
      }),
    ),
    routes: section(
      {
        answer_path: path('POST route that answers a function call.', '/v1/sessions/{session_id}/answers'),
        message_path: path('POST route that sends a message.', '/v1/sessions/{session_id}/messages'),
        message_body: Type.Optional(
          Type.Unsafe<Record<string, unknown>>({
            type: 'object',
            description: 'Body of that message, with {{text}} where the text goes.',
            examples: [{ type: 'user.message', text: '{{text}}' }],
          }),
        ),
        turn_path: path('GET route of a single turn.', '/v1/sessions/{session_id}/turns/{turn_id}'),
        session_stream_path: path('GET route of one session’s stream.', '/v1/sessions/{session_id}/events'),
        idempotency_header: Type.Optional(
          Type.String({
            description: 'Name of the idempotency header.',
            pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$",
            errorMessage: 'the name of an HTTP header',
            examples: ['Idempotency-Key'],
          }),
        ),
      },
      { description: 'What discovery cannot find, or finds wrongly.', default: {} },
    ),
  },
  { description: 'The service that we follow.' },
)

const store = section(
  {
    url: Type.String({
      description:
        'sqlite:PATH (relative to the working directory) or postgres://user@host/db for several replicas.',
      format: 'store-url',
      default: 'sqlite:data/sidecar.db',
    }),
    retention: duration('Delivered facts older than this are pruned; undelivered never.', ['1m', '3650d'], {
      default: '7d',
    }),
  },
  { description: 'Where facts, deliveries and calls are kept.', default: {} },
)

const stream = section(
  {
    enabled: flag('Follow the event stream.', true),
    start_from: Type.Unsafe<string | number>({
      anyOf: [
        { enum: ['now', 'beginning'] },
        { type: 'string', pattern: '^[0-9]{1,40}$' },
        { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
      ],
      description: 'Where to begin on an empty store; later starts go on where the last one ended.',
      errorMessage: 'now, beginning, or a seq (one of more than 15 digits in quotes)',
      default: 'now',
    }),
  },
  { description: 'The event stream: detailed and prompt.', default: {} },
)

const webhooks = section(
  {
    enabled: flag('Receive webhooks.', false),
    listen: Type.String({
      description: 'HOST:PORT of the webhook listener.',
      format: 'listen',
      default: '0.0.0.0:8480',
    }),
    path: Type.String({
      description: 'Path that webhooks are posted to.',
      pattern: '^/[^?#\\s]*$',
      errorMessage: 'a path that begins with "/"',
      default: '/webhooks',
    }),
    public_url: Type.Optional(
      Type.String({
        description:
          'Address under which the service reaches the listener. Set: the sidecar makes and looks after the subscription.',
        format: 'webhook-url',
        examples: ['https://app.example.com/webhooks'],
      }),
    ),
    secrets: Type.Array(Type.String({ minLength: 1, writeOnly: true }), {
      description: 'Secrets of a subscription made elsewhere; several while rotating.',
      maxItems: 8,
      default: [],
    }),
    secrets_file: secretFile('the secrets, one a line'),
    tolerance: duration('How far a delivery’s timestamp may be from our clock.', ['1s', '1h'], {
      default: '5m',
    }),
  },
  { description: 'Webhooks from the service.', default: {} },
)

const polling = section(
  {
    enabled: flag('Poll the service.', true),
    interval: duration('Between looks at sessions that are not at rest.', ['100ms', '1d'], {
      default: '30s',
    }),
    sweep: duration('Between looks at everything.', ['1s', '7d'], { default: '15m' }),
  },
  { description: 'Reading the resources by ourselves.', default: {} },
)

const admin = section(
  {
    listen: Type.String({
      description: 'HOST:PORT of probes, metrics, the API and the console.',
      format: 'listen',
      default: '127.0.0.1:8481',
    }),
    token: secret('Bearer token of the API and the console; needed unless listening on loopback.', {
      format: 'token',
      examples: ['${ADMIN_TOKEN:-}'],
    }),
    token_file: secretFile('the bearer token'),
  },
  { description: 'The admin listener.', default: {} },
)

const log = section(
  {
    level: Type.Union(
      [
        Type.Literal('debug'),
        Type.Literal('info'),
        Type.Literal('warn'),
        Type.Literal('error'),
        Type.Literal('silent'),
      ],
      { description: 'The least serious lines that are written.', default: 'info' },
    ),
    format: Type.Union([Type.Literal('auto'), Type.Literal('json'), Type.Literal('pretty')], {
      description: 'auto: pretty on a terminal, JSON elsewhere.',
      default: 'auto',
    }),
  },
  { description: 'Lines on standard error.', default: {} },
)

export const settings = section(
  {
    service,
    store,
    stream,
    webhooks,
    polling,
    handlers: Type.Array(handler, { description: 'Who is told of facts.', maxItems: 200, default: [] }),
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

/** The keys as in the file, as a person writes them: what has a default may be left out. */
export interface ConfigInput {
  service: Some<Settings['service'], 'base_url'>
  store?: Partial<Settings['store']>
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
