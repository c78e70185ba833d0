import { Type } from 'typebox'
import { duration, secret, secretFile, section } from './section.ts'

export const store = section(
  {
    url: Type.String({
      description:
        'sqlite:PATH (relative to this file; in the image, to /app) or postgres://USER@HOST/DATABASE?sslmode=verify-full.',
      format: 'store-url',
      default: 'sqlite:data/sidecar.db',
    }),
    password: secret('Password of the database. Default: the password in the address, or else PGPASSWORD.', {
      minLength: 1,
      examples: ['${DATABASE_PASSWORD}'],
    }),
    password_file: secretFile('the password of the database'),
    retention: duration(
      'Facts older than this are removed, except those with a pending or dead delivery.',
      ['1m', '3650d'],
      {
        default: '7d',
      },
    ),
  },
  { description: 'Where facts, deliveries and calls are stored.', default: {} },
)

export const admin = section(
  {
    listen: Type.String({
      description: 'HOST:PORT of probes, metrics, the API and the console.',
      format: 'listen',
      default: '127.0.0.1:8481',
    }),
    token: secret(
      'Bearer token of the API and the console. Without one they are turned off, unless the listener is on loopback.',
      {
        format: 'token',
        examples: ['${ADMIN_TOKEN:-}'],
      },
    ),
    token_file: secretFile('the bearer token'),
  },
  { description: 'The admin listener.', default: {} },
)

export const log = section(
  {
    level: Type.Union(
      [
        Type.Literal('debug'),
        Type.Literal('info'),
        Type.Literal('warn'),
        Type.Literal('error'),
        Type.Literal('silent'),
      ],
      { description: 'The lowest level that is written.', default: 'info' },
    ),
    format: Type.Union([Type.Literal('auto'), Type.Literal('json'), Type.Literal('pretty')], {
      description: 'auto: pretty on a terminal, JSON elsewhere.',
      default: 'auto',
    }),
  },
  { description: 'Lines on standard error.', default: {} },
)
