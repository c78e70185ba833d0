import { Type } from 'typebox'
import { secret, secretFile, section } from './section.ts'

const path = (description: string, example: string) =>
  Type.Optional(
    Type.String({
      description,
      pattern: '^/',
      errorMessage: 'a path that begins with "/"',
      examples: [example],
    }),
  )

export const service = section(
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
        description: 'When the token expires; the service does not report it. For a metric and a warning.',
        format: 'date-or-time',
        examples: ['2027-01-31'],
      }),
    ),
    session_slots: Type.Integer({
      description:
        'Sessions that the organization may have at once; the service does not report it. For a metric and an alert.',
      minimum: 1,
      maximum: 1_000_000,
      default: 25,
    }),
    console_url: Type.Optional(
      Type.String({
        description:
          "Address of the service's Console, where people answer; {session_id} is replaced by the id of a session. Default: the origin of base_url.",
        format: 'http-url',
        examples: ['https://agents.example.com/console/sessions/{session_id}'],
      }),
    ),
    routes: section(
      {
        answer_path: path('POST route that answers a function call.', '/v1/sessions/{session_id}/answers'),
        message_path: path('POST route that sends a message.', '/v1/sessions/{session_id}/messages'),
        message_body: Type.Optional(
          Type.Unsafe<Record<string, unknown>>({
            type: 'object',
            description: 'Body of a request to message_path, with {{text}} where the text goes.',
            examples: [{ type: 'user.message', text: '{{text}}' }],
          }),
        ),
        turn_path: path('GET route of a single turn.', '/v1/sessions/{session_id}/turns/{turn_id}'),
        session_stream_path: path('GET route of one session’s stream.', '/v1/sessions/{session_id}/events'),
        idempotency_header: Type.Optional(
          Type.String({
            description: 'Name of the header for the idempotency key of a POST.',
            pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$",
            errorMessage: 'the name of an HTTP header',
            examples: ['Idempotency-Key'],
          }),
        ),
      },
      { description: 'Routes that discovery cannot find, or finds wrongly.', default: {} },
    ),
  },
  { description: 'The Agent Session Service that the sidecar follows.' },
)
