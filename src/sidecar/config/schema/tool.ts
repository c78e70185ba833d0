import { Type } from 'typebox'
import { duration, NAME, retry, section } from './section.ts'
import { exactlyOneTarget, target } from './target.ts'

export const tool = section(
  {
    name: Type.String({
      description:
        'Name of the function as declared on the session, or `*` for every function without a tool of its own; `{name}` in its url is replaced by the name.',
      pattern: '^([A-Za-z0-9_-]{1,64}|\\*)$',
      errorMessage: `${NAME.errorMessage}, or "*"`,
    }),
    description: Type.Optional(Type.String({ description: 'Description of the tool for the model.' })),
    parameters: Type.Optional(
      Type.Unsafe<Record<string, unknown>>({
        type: 'object',
        description: 'JSON Schema of the arguments, as declared on the session.',
        examples: [{ type: 'object', properties: { order_id: { type: 'string' } }, required: ['order_id'] }],
      }),
    ),
    ...target('tool', 'http://127.0.0.1:3000/tools/lookup_order'),
    timeout: duration('Time limit of one run of the tool.', ['1ms', '2h'], { default: '30s' }),
    deadline: Type.Optional(
      duration(
        'Time limit of the whole call, with all attempts and a late answer; declared on the session as `timeout_seconds`. Without it a call may wait forever.',
        ['1s', '2h'],
        { examples: ['10m'] },
      ),
    ),
    concurrency: Type.Integer({
      description: 'Largest number of runs under way at once, over all sessions.',
      minimum: 1,
      maximum: 1024,
      default: 8,
    }),
    retry: retry(3, '250ms', '5s', 'Repeated runs after failures, within the deadline of the call.'),
    after_crash: Type.Union([Type.Literal('retry'), Type.Literal('fail')], {
      description:
        'If a tool may have run and gave no result (crash, time-out, reset, status such as 500 or 429): `retry` runs it again with the same key, `fail` posts the error.',
      default: 'retry',
    }),
    error: Type.String({
      description: 'The only error text that the model ever sees.',
      minLength: 1,
      maxLength: 4000,
      default: 'The tool could not complete this request.',
    }),
    on_not_delivered: Type.Union([Type.Literal('resend'), Type.Literal('report')], {
      description:
        'If the sandbox no longer waits for an answer: `resend` sends the information as a new message, `report` only reports `call.not_delivered`.',
      default: 'resend',
    }),
  },
  { description: 'A function tool that the sidecar answers.', ...exactlyOneTarget },
)
