import { Type } from 'typebox'
import { secret, secretFile } from './section.ts'

/** The settings that handlers and tools share: how they are reached, and how our requests to them are signed. */
export const target = (kind: 'handler' | 'tool', example: string) => ({
  url: Type.Optional(
    Type.String({
      description: `HTTP address of the ${kind}. Exactly one of url and module.`,
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
    'Standard Webhooks secret that signs the requests. Without one they are unsigned, with a warning unless the url is on loopback.',
    { format: 'callback-secret', examples: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] },
  ),
  secret_file: secretFile('the secret'),
  secrets: Type.Optional(
    Type.Array(Type.String({ format: 'callback-secret', writeOnly: true }), {
      description: 'Several secrets while rotating, the newest first; each signs every request.',
      maxItems: 8,
    }),
  ),
  secrets_file: secretFile('the secrets, one a line, the newest first'),
})

export const exactlyOneTarget = { oneOf: [{ required: ['url'] }, { required: ['module'] }] }
