/** Two descriptions of the same service that differ in all that the interface leaves open. */

const string = { type: 'string' }
const ok = (schema: unknown): unknown => ({
  description: 'fine',
  headers: {
    'X-RateLimit-Remaining': { schema: { type: 'integer' } },
    'X-RateLimit-Bucket': { schema: string },
  },
  content: { 'application/json': { schema } },
})
const stream = { description: 'frames', content: { 'text/event-stream': { schema: string } } }
const json = (schema: unknown): unknown => ({ required: true, content: { 'application/json': { schema } } })
const key = { name: 'Idempotency-Key', in: 'header', schema: { type: 'string', maxLength: 255 } }
const scoped = (scope: string): object => ({ security: [{ bearer: [scope] }] })
const listed = [
  { name: 'limit', in: 'query', schema: { type: 'integer' } },
  { name: 'after', in: 'query', schema: string },
]

export const plainDocument = {
  openapi: '3.1.0',
  paths: {
    '/v1/health': { get: { responses: { 200: ok({}) } } },
    '/v1/events': { get: { ...scoped('sessions:read'), responses: { 200: stream } } },
    '/v1/sessions': {
      get: { ...scoped('sessions:read'), parameters: listed, responses: { 200: ok({}) } },
      post: {
        parameters: [key],
        requestBody: json({ type: 'object', properties: { title: string, input: { type: 'object' } } }),
        responses: { 201: ok({}) },
      },
    },
    '/v1/sessions/{session_id}/input': {
      post: {
        ...scoped('sessions:write'),
        parameters: [key],
        requestBody: json({
          type: 'object',
          properties: { type: { type: 'string', enum: ['input.message', 'input.steer'] }, text: string },
          required: ['type', 'text'],
        }),
        responses: { 202: ok({}) },
      },
    },
    '/v1/sessions/{session_id}/files': {
      post: {
        parameters: [key],
        requestBody: json({
          type: 'object',
          properties: {
            files: {
              type: 'array',
              items: {
                type: 'object',
                properties: { type: { enum: ['inline'] }, path: string, data: string },
              },
            },
          },
        }),
        responses: { 200: ok({}) },
      },
    },
    '/v1/sessions/{session_id}/actions': {
      post: {
        ...scoped('tools:respond'),
        parameters: [key],
        requestBody: json({
          type: 'object',
          properties: { call_id: string, output: string, error: string },
          required: ['call_id'],
        }),
        responses: { 200: ok({}) },
      },
    },
    '/v1/sessions/{session_id}/turns/{turn_id}': { get: { responses: { 200: ok({}) } } },
    '/v1/sessions/{session_id}/events': { get: { responses: { 200: stream } } },
    '/v1/sessions/{session_id}/artifacts': { get: { parameters: listed, responses: { 200: ok({}) } } },
    '/v1/sessions/{session_id}/artifacts/archive': {
      get: { responses: { 200: { content: { 'application/x-tar': {} } } } },
    },
  },
}

export const otherDocument = {
  openapi: '3.1.0',
  components: {
    parameters: {
      Once: {
        name: 'X-Request-Key',
        in: 'header',
        description: 'Makes the request idempotent.',
        schema: string,
      },
    },
    headers: {
      Left: { description: 'What is left of the rate budget', schema: { type: 'integer' } },
      Bucket: { description: 'The rate budget that this describes', schema: string },
    },
    responses: {
      Accepted: {
        headers: {
          'X-Budget-Left': { $ref: '#/components/headers/Left' },
          'X-Budget-Bucket': { $ref: '#/components/headers/Bucket' },
          'Retry-After': { description: 'seconds of the rate limit', schema: string },
        },
        content: { 'application/json': { schema: {} } },
      },
    },
    schemas: {
      Text: { type: ['string', 'null'] },
      Message: {
        allOf: [
          {
            type: 'object',
            required: ['event'],
            properties: { event: { $ref: '#/components/schemas/Event' } },
          },
        ],
      },
      Event: {
        oneOf: [
          {
            type: 'object',
            required: ['type', 'content'],
            properties: { type: { const: 'input.steer' }, content: { $ref: '#/components/schemas/Text' } },
          },
          {
            type: 'object',
            required: ['type', 'content', 'channel'],
            properties: {
              type: { const: 'input.message' },
              channel: { const: 'user' },
              content: { $ref: '#/components/schemas/Text' },
            },
          },
        ],
      },
      Result: {
        type: 'object',
        required: ['call_id', 'session_id', 'kind'],
        properties: { call_id: string, session_id: string, kind: { const: 'function' } },
        anyOf: [{ properties: { output: string } }, { properties: { error: string } }],
      },
      Turn: { type: 'object', properties: { object: { const: 'turn' }, id: string } },
      Artifacts: {
        type: 'object',
        properties: {
          data: { type: 'array', items: { type: 'object', properties: { object: { enum: ['artifact'] } } } },
        },
      },
    },
  },
  paths: {
    '/v1/sessions/{id}/messages': {
      parameters: [{ $ref: '#/components/parameters/Once' }],
      post: {
        'x-required-scope': 'sessions:write',
        requestBody: json({ $ref: '#/components/schemas/Message' }),
        responses: { 202: { $ref: '#/components/responses/Accepted' } },
      },
    },
    '/v1/tool-results': {
      post: {
        'x-required-scope': 'tools:respond',
        parameters: [{ $ref: '#/components/parameters/Once' }],
        requestBody: json({ $ref: '#/components/schemas/Result' }),
        responses: { 200: { $ref: '#/components/responses/Accepted' } },
      },
    },
    '/v1/runs/{run}': {
      get: {
        responses: {
          200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Turn' } } } },
        },
      },
    },
    '/v1/sessions/{id}/stream': { get: { responses: { 200: stream } } },
    '/v1/sessions/{id}/published': {
      get: {
        responses: {
          200: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Artifacts' } } } },
        },
      },
    },
  },
}
