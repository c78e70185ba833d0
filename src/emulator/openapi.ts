import type { TSchema } from 'typebox'
import { frameExamples, webhookExamples } from './example.ts'
import { shape, type Described, type Operation } from './operation.ts'
import { PART_OF_OPERATION, type OpenPart } from './open-part.ts'
import type { OpenDetails } from './profile/details.ts'
import { shapesOf } from './shapes.ts'

type Fields = Record<string, unknown>

const REASONS: Readonly<Record<number, string>> = {
  400: 'An unknown field or parameter, or an invalid value.',
  401: 'The access token is rejected. Terminal.',
  403: 'The access token lacks the scope that the message names.',
  404: 'Unknown resource.',
  409: 'Conflict.',
  429: 'A rate or another limit; `error.code` distinguishes them.',
  500: 'The service failed; report it with the `request_id`.',
  503: 'The identity directory cannot be reached.',
}

/** Past changes that a client may notice (rules VER-05, VER-06). Additions are not listed. */
const CHANGES = [
  {
    kind: 'reshape',
    change: 'Reading session tools and agents gives one `tools` array with a `type` on each entry.',
  },
  { kind: 'removal', change: 'Agents no longer return MCP credentials.' },
  {
    kind: 'removal',
    change: 'Unknown body fields and unknown fields of tool entries are no longer accepted.',
  },
]

/** The description of all mounted operations in this profile (OpenAPI 3.1), without the parts that are left out. */
export function describe(
  operations: readonly Operation[],
  details: OpenDetails,
  leftOut: ReadonlySet<OpenPart> = new Set(),
): Fields {
  const paths: Record<string, Fields> = {}
  for (const operation of operations) {
    const part = PART_OF_OPERATION[operation.id]
    if (part !== undefined && leftOut.has(part)) continue
    const path = (paths[operation.path] ??= {})
    path[operation.method.toLowerCase()] = describeOperation(operation, details, leftOut)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Agent Session Service',
      version: 'v1',
      description: 'Runs an autonomous agent inside a cloud sandbox for each session.',
      'x-change-list': CHANGES,
    },
    servers: [{ url: '/' }],
    paths,
    webhooks: describeWebhooks(details),
    components: {
      schemas: shapesOf(details),
      securitySchemes: {
        accessToken: { type: 'http', scheme: 'bearer', description: 'A personal access token.' },
      },
    },
  }
}

function describeOperation(
  operation: Operation,
  details: OpenDetails,
  leftOut: ReadonlySet<OpenPart>,
): Fields {
  const scope = operation.access.includes(':') ? operation.access : undefined
  return {
    operationId: details.operationId(operation.id),
    summary: operation.summary,
    ...(operation.deprecated === true ? deprecation(details) : {}),
    ...(scope !== undefined && details.auth.namesScope ? { 'x-required-scope': scope } : {}),
    security: operation.access === 'open' ? [] : [{ accessToken: scope === undefined ? [] : [scope] }],
    parameters: parametersOf(
      operation,
      leftOut.has('idempotency-header') ? null : details.idempotency.header,
    ),
    ...(operation.body === undefined ? {} : { requestBody: bodyOf(operation) }),
    responses: responsesOf(operation, details, !leftOut.has('rate-headers')),
  }
}

function deprecation({ sunset }: OpenDetails): Fields {
  return { deprecated: true, ...(sunset === null ? {} : { 'x-sunset': sunset }) }
}

function parametersOf(operation: Operation, idempotencyHeader: string | null): Fields[] {
  const parameters: Fields[] = [...operation.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const required: unknown[] = operation.query === undefined ? [] : listIn(operation.query, 'required')
  for (const [name, schema] of Object.entries(propertiesOf(operation.query))) {
    parameters.push({ name, in: 'query', required: required.includes(name), schema })
  }
  if (operation.resumes === true) {
    parameters.push(
      headerParameter('Last-Event-ID', 'Resume after this `seq`; 0 for everything.', { type: 'string' }),
    )
  }
  if (operation.idempotent === true && idempotencyHeader !== null) {
    const description = 'Idempotency: the same value replays the first answer instead of acting again.'
    parameters.push(headerParameter(idempotencyHeader, description, { type: 'string', maxLength: 255 }))
  }
  return parameters
}

function headerParameter(name: string, description: string, schema: Fields): Fields {
  return { name, in: 'header', required: false, description, schema }
}

function propertiesOf(schema: TSchema | undefined): Record<string, unknown> {
  const properties: unknown = schema === undefined ? undefined : Reflect.get(schema, 'properties')
  return typeof properties === 'object' && properties !== null ? { ...properties } : {}
}

function listIn(schema: TSchema, key: string): unknown[] {
  const list: unknown = Reflect.get(schema, key)
  return Array.isArray(list) ? list : []
}

function bodyOf(operation: Operation): Fields {
  return {
    required: operation.bodyOptional !== true,
    content: { 'application/json': { schema: operation.body } },
  }
}

function responsesOf(operation: Operation, details: OpenDetails, showsBudget: boolean): Fields {
  const budget = operation.access === 'open' || !showsBudget ? {} : headersOf(details.budget.described)
  const statuses = [400, 500, ...(operation.refusals ?? [])]
  if (operation.access !== 'open') statuses.push(401, 403, 429, 503)
  if (operation.idempotent === true && details.idempotency.otherBody === 'conflict') statuses.push(409)
  const refusals = [...new Set(statuses)]
    .sort((a, b) => a - b)
    .map((status) => [
      String(status),
      {
        description: REASONS[status] ?? 'Refused.',
        headers: status === 401 ? {} : budget,
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    ])
  const { success } = operation
  return {
    [String(success.status)]: {
      description: success.description,
      headers: { ...budget, ...headersOf(success.headers ?? {}) },
      ...contentOf(success, details),
    },
    ...Object.fromEntries(refusals),
  }
}

function contentOf({ schema, type = 'application/json' }: Described, details: OpenDetails): Fields {
  if (schema === undefined) return {}
  const examples = type === 'text/event-stream' ? { examples: frameExamples(details) } : {}
  return { content: { [type]: { schema, ...examples } } }
}

function headersOf(schemas: Readonly<Record<string, TSchema>>): Fields {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const description: unknown = Reflect.get(schema, 'description')
      return [name, { schema, ...(typeof description === 'string' ? { description } : {}) }]
    }),
  )
}

const SIGNATURE = [
  requiredHeader(
    'x-service-timestamp',
    'Milliseconds since the epoch, in exactly the digits that were signed.',
  ),
  requiredHeader(
    'x-service-signature',
    'HMAC-SHA256 of `<timestamp>.<raw body>` in hex, keyed with the secret.',
  ),
]

function requiredHeader(name: string, description: string): Fields {
  return { name, in: 'header', required: true, description, schema: { type: 'string' } }
}

function describeWebhooks(details: OpenDetails): Fields {
  return Object.fromEntries(
    Object.entries(webhookExamples(details)).map(([name, example]) => [
      name,
      {
        post: {
          summary: `Sent to subscribers of ${name}, signed with their secret`,
          parameters: SIGNATURE,
          requestBody: {
            required: true,
            content: { 'application/json': { schema: shape('WebhookDelivery'), example } },
          },
          responses: { '200': { description: 'Any 2xx within ten seconds.' } },
        },
      },
    ]),
  )
}
