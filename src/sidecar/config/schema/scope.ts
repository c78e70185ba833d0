import { Type } from 'typebox'
import { section } from './section.ts'

export const scope = section(
  {
    metadata: Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      maxProperties: 50,
      description: 'Pairs that a session must have in its metadata, all of them. Empty: any session.',
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
          'Id of the token that created a session (its created_by_token, never the token itself), or a list of such ids.',
        errorMessage: 'the id of a token, or a list of ids',
        examples: ['tok_1'],
      }),
    ),
  },
  {
    description:
      'Selects the sessions of this sidecar. Of other sessions only the list is read: they make no fact and run no tool. Empty: all sessions. A session must match all given keys.',
    default: {},
  },
)
