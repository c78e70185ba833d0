import { Type, type TObject } from 'typebox'
import { component, type Component } from './component.ts'
import { PROBLEM_CONTENT, PROBLEM_TYPE } from './problem.ts'
import { described, route, type Description, type Route, type TextType } from './route.ts'

export const ProblemDocument = component(
  'Problem',
  Type.Object(
    {
      type: Type.String({ description: `${PROBLEM_TYPE} and one word that names the kind.` }),
      title: Type.String(),
      status: Type.Integer(),
      detail: Type.String({ description: 'The details, for people.' }),
      instance: Type.String({ description: 'The requested path.' }),
      error: Type.Optional(
        Type.Object(
          { code: Type.String(), message: Type.String(), request_id: Type.String() },
          { description: "The same in the form that the service's own clients read; only below /v1." },
        ),
      ),
      errors: Type.Optional(
        Type.Array(
          Type.Object({
            field: Type.String({ description: 'A query parameter, or a JSON Pointer into the body.' }),
            detail: Type.String(),
          }),
          { description: 'Every fault of the request.' },
        ),
      ),
    },
    { description: 'RFC 9457 problem details.' },
  ),
)
/** The paths that `probes.ts` answers. */
const PROBES: readonly Description[] = [
  probe('livez', 'Whether the process responds.'),
  probe('readyz', 'Whether the sidecar accepts work.'),
  probe('startupz', 'Whether the first read of the service is done.'),
  described({
    method: 'GET',
    path: '/metrics',
    summary: 'Metrics for Prometheus.',
    open: true,
    success: { status: 200, description: 'The text exposition format.', content: 'text/plain' },
  }),
]

function probe(name: string, summary: string): Description {
  return described({
    method: 'GET',
    path: `/${name}`,
    summary,
    open: true,
    query: Type.Object({
      verbose: Type.Optional(Type.String({ description: 'One line for each check, for people.' })),
    }),
    success: { status: 200, description: 'Yes.', content: 'text/plain' },
    problems: [503],
  })
}

const Document = component(
  'OpenApi',
  Type.Record(Type.String(), Type.Unknown(), { description: 'An OpenAPI 3.1 document.' }),
)

/**
 * The routes of the OpenAPI document, which describes the probes, `routes` and itself. Clients of the service look for
 * it below /v1, so it is also there.
 */
export function openApiRoutes(options: {
  version: string
  routes: readonly Route[]
  /** Whether a token is required now. */
  secured: () => boolean
}): Route[] {
  const own = ['/openapi.json', '/v1/openapi.json'].map((path): Route =>
    route(
      {
        method: 'GET',
        path,
        summary: 'The OpenAPI description of these routes.',
        success: { status: 200, description: 'An OpenAPI document.', content: Document },
      },
      () => describe([...PROBES, ...options.routes, ...own], options.version, options.secured()),
    ),
  )
  return own
}

/** OpenAPI 3.1, made from the schemas that check the requests. */
function describe(
  routes: readonly Description[],
  version: string,
  secured: boolean,
): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const one of routes) {
    paths[one.path] = { ...paths[one.path], [one.method.toLowerCase()]: operation(one, secured) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'agent-session-sidecar, admin API',
      version,
      description:
        'Reads and controls one running sidecar. Times are milliseconds since the epoch unless stated otherwise.',
    },
    paths,
    components: {
      schemas: schemasOf([
        ProblemDocument,
        ...routes.flatMap(({ success: { content } }) => (typeof content === 'string' ? [] : [content])),
      ]),
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'admin.token of the configuration.' },
      },
    },
  }
}

function operation(
  { method, path, summary, open, query, body, success, problems }: Description,
  secured: boolean,
): object {
  const locked = secured && !open
  const refusals = [...(open ? [] : [400, ...(locked ? [401] : [])]), ...problems]
  return {
    operationId: operationId(method, path),
    summary,
    security: locked ? [{ token: [] }] : [],
    parameters: [
      ...pathParameters(path),
      ...queryParameters(query),
      ...(success.content === 'text/event-stream' ? [RESUMING] : []),
    ],
    ...(method === 'POST' ? { requestBody: requestBody(body) } : {}),
    responses: {
      [success.status]: { description: success.description, content: contentOf(success.content) },
      ...Object.fromEntries(
        refusals.map((status) => [status, problemAnswer(REFUSALS[status] ?? 'Refused.')]),
      ),
      default: problemAnswer('Any other error.'),
    },
  }
}

const RESUMING = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  description: 'Like last_event_id, and takes precedence over it.',
  schema: { type: 'string' },
}

const REFUSALS: Record<number, string> = {
  400: 'The request is not as described here.',
  401: 'The token is missing or wrong.',
  404: 'The resource does not exist.',
  409: 'The present state does not allow it.',
  429: 'Too many at once; retry after Retry-After.',
  503: 'No.',
}

function operationId(method: string, path: string): string {
  const words = path.replace(/\.json$/, '').match(/[a-z_]+/g) ?? []
  return [method.toLowerCase(), ...words.filter((word) => word !== 'api')].join('_')
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function queryParameters(query: TObject): object[] {
  const required = new Set<unknown>(query['required'] as readonly unknown[] | undefined)
  return Object.entries(query.properties).map(([name, schema]) => {
    const { description, ...rest } = schema as { description?: string }
    return {
      name,
      in: 'query',
      required: required.has(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    }
  })
}

function requestBody(body: TObject): object {
  const required = body['required'] as readonly string[] | undefined
  return { required: (required ?? []).length > 0, content: { 'application/json': { schema: body } } }
}

function contentOf(content: Component | TextType): object {
  if (typeof content === 'string') return { [content]: { schema: { type: 'string' } } }
  return { 'application/json': { schema: { $ref: `#/components/schemas/${content.name}` } } }
}

function problemAnswer(description: string): object {
  return {
    description,
    content: { [PROBLEM_CONTENT]: { schema: { $ref: `#/components/schemas/${ProblemDocument.name}` } } },
  }
}

function schemasOf(
  components: readonly Component[],
  into: Record<string, unknown> = {},
): Record<string, unknown> {
  for (const { name, schema, parts } of components) {
    into[name] = schema
    schemasOf(parts, into)
  }
  return into
}
