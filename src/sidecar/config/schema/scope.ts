import { Type } from 'typebox'
import { section } from './section.ts'

export const scope = section(
  {
    metadata: Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      maxProperties: 50,
      description:
        'Keys and values that a session must have in its metadata, all of them. Empty: any session.',
      examples: [{ app: 'billing' }],
      default: {},
    }),
    created_by_token: Type.Optional(
      Type.Unsafe<string | string[]>({
        anyOf: [
          { type: 'string', minLength: 1 },
          { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1, maxItems: 100 },
        ],
        description:
          'Only sessions with this value in their field created_by_token: the id of a token, never the token itself. Or a list of ids.',
        errorMessage: 'the id of a token, or a list of ids',
        examples: ['tok_1'],
      }),
    ),
  },
  {
    description:
      'Selects the sessions of this sidecar. Other sessions make no facts and run no tools. Empty: all sessions. A session must match all given keys.',
    default: {},
  },
)
