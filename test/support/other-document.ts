const id = (name: string) => ({ name, in: 'path', required: true, schema: { type: 'string' } })
const once = {
  name: 'X-Once',
  in: 'header',
  description: 'Makes the request idempotent: the same value is answered as the first time.',
  schema: { type: 'string', maxLength: 255 },
}
const page = ['limit', 'after', 'order'].map((name) => ({ name, in: 'query', schema: { type: 'string' } }))
const json = (schema: object) => ({ content: { 'application/json': { schema } } })
const quota = {
  'X-Quota-Left': { description: 'Requests left in the quota.', schema: { type: 'integer' } },
  'X-Quota-Name': { description: 'Which quota that is.', schema: { type: 'string' } },
}
const ok = (schema: object = {}) => ({ '200': { description: 'fine', headers: quota, ...json(schema) } })
const closed = (properties: Record<string, object>, required: string[]) => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
})

/** What the other service says of itself: parameters, references and an `allOf` are written unlike the emulator's. */
export const OTHER_DOCUMENT = {
  openapi: '3.0.3',
  info: { title: 'Agent Session Service, another make', version: '1' },
  paths: {
    '/v1/health': { get: { responses: ok() } },
    '/v1/sessions': {
      get: {
        parameters: [...page, { name: 'status', in: 'query', schema: { type: 'string' } }],
        responses: ok(),
      },
    },
    '/v1/sessions/{sid}': { parameters: [id('sid')], get: { responses: ok() } },
    '/v1/sessions/{sid}/turns': { parameters: [id('sid')], get: { parameters: page, responses: ok() } },
    '/v1/sessions/{sid}/items': { parameters: [id('sid')], get: { parameters: page, responses: ok() } },
    '/v1/sessions/{sid}/products': {
      parameters: [id('sid')],
      get: {
        responses: ok({
          type: 'object',
          properties: {
            data: {
              type: 'array',
              items: { type: 'object', properties: { object: { type: 'string', enum: ['artifact'] } } },
            },
          },
        }),
      },
    },
    '/v1/sessions/{sid}/say': {
      parameters: [id('sid')],
      post: {
        parameters: [once],
        requestBody: json({ $ref: '#/components/schemas/Utterance' }),
        responses: { '202': { description: 'accepted', ...json({}) } },
      },
    },
    '/v1/sessions/{session_id}/tool_outputs': {
      post: {
        parameters: [id('session_id'), once],
        requestBody: json({ allOf: [{ $ref: '#/components/schemas/ToolOutput' }] }),
        responses: ok(),
      },
    },
    '/v1/events': {
      get: { responses: { '200': { description: 'frames', content: { 'text/event-stream': {} } } } },
    },
    '/v1/webhooks': {
      get: { parameters: page, responses: ok() },
      post: {
        parameters: [once],
        requestBody: json(
          closed({ url: { type: 'string' }, events: { type: 'array', items: { type: 'string' } } }, ['url']),
        ),
        responses: ok(),
      },
    },
    '/v1/webhooks/{wid}': { delete: { parameters: [id('wid')], responses: ok() } },
  },
  components: {
    schemas: {
      Utterance: closed(
        {
          kind: { type: 'string', enum: ['text', 'steer'] },
          body: { type: 'string' },
          lang: { type: 'string' },
        },
        ['kind', 'body'],
      ),
      ToolOutput: closed(
        { call_id: { type: 'string' }, output: { type: 'string' }, error: { type: 'string' } },
        ['call_id'],
      ),
    },
  },
}
