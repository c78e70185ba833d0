import { Type } from 'typebox'
import { duration, flag, secretFile, section } from './section.ts'

export const stream = section(
  {
    enabled: flag('Follow the event stream.', true),
    start_from: Type.Unsafe<string | number>({
      anyOf: [
        { enum: ['now', 'beginning'] },
        { type: 'string', pattern: '^[0-9]{1,40}$' },
        { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
      ],
      description:
        'Where the stream begins on an empty store. A number: after the event with this `seq`. Later starts continue at the stored cursor.',
      errorMessage: 'now, beginning, or a seq (one of more than 15 digits in quotes)',
      default: 'now',
    }),
  },
  { description: 'The event stream: detailed and prompt.', default: {} },
)

export const webhooks = section(
  {
    enabled: flag('Receive webhooks.', false),
    listen: Type.String({
      description: 'HOST:PORT of the webhook listener.',
      format: 'listen',
      default: '0.0.0.0:8480',
    }),
    path: Type.String({
      description: 'Path that webhooks are posted to.',
      pattern: "^/[A-Za-z0-9._~!$&'()*+,;=:@/%-]*$",
      errorMessage: 'a path that begins with "/", of characters that need no escape in an address',
      default: '/webhooks',
    }),
    public_url: Type.Optional(
      Type.String({
        description:
          'Address under which the service reaches the listener. If set, the sidecar creates and maintains the subscription.',
        format: 'webhook-url',
        examples: ['https://app.example.com/webhooks'],
      }),
    ),
    secrets: Type.Array(Type.String({ minLength: 1, writeOnly: true }), {
      description:
        'Secret of a subscription that you created yourself; while rotating, the old and the new one.',
      maxItems: 8,
      default: [],
    }),
    secrets_file: secretFile('the secrets, one a line'),
    tolerance: duration(
      'How far the timestamp of a webhook may be from the clock of this machine.',
      ['1s', '1h'],
      {
        default: '5m',
      },
    ),
  },
  { description: 'Webhooks from the service.', default: {} },
)

export const polling = section(
  {
    enabled: flag('Poll the service.', true),
    interval: duration(
      'Interval at which the sidecar lists sessions, and reads those that are new, changed or not idle.',
      ['100ms', '1d'],
      {
        default: '30s',
      },
    ),
    sweep: duration(
      'Interval at which the sidecar lists all sessions, to find every change and deletion.',
      ['1s', '7d'],
      { default: '15m' },
    ),
  },
  { description: 'Polling: periodic reads of the resources.', default: {} },
)
