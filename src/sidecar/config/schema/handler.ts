import { Type } from 'typebox'
import { EVENT_FAMILIES, EVENT_TYPES } from '../../../core/event-type.ts'
import { TYPE_PATTERN } from '../../../core/pattern.ts'
import { duration, flag, NAME, retry, section } from './section.ts'
import { exactlyOneTarget, target } from './target.ts'

export const handler = section(
  {
    name: Type.String({ description: 'Name of the handler in commands, metrics and callbacks.', ...NAME }),
    ...target('handler', 'http://127.0.0.1:3000/agent-events'),
    events: Type.Array(
      Type.String({
        pattern: TYPE_PATTERN,
        errorMessage: '"*", a whole type such as "turn.settled", or a prefix such as "turn.*"',
        // Editors suggest these types; the pattern also accepts any other type.
        anyOf: [{ enum: ['*', ...EVENT_FAMILIES, ...EVENT_TYPES] }, {}],
      }),
      {
        description:
          'Types of facts to deliver: "*", a prefix such as "turn.*", or a whole type. Transient types, such as "agent.text", must be named in full.',
        minItems: 1,
        maxItems: 200,
        default: ['*'],
        examples: [['turn.*', 'session.*', 'action.*']],
      },
    ),
    format: Type.Union([Type.Literal('standard'), Type.Literal('cloudevents')], {
      description:
        'Form of the body: `standard`, the sidecar’s own JSON, or CloudEvents 1.0 structured JSON.',
      default: 'standard',
    }),
    ordered: flag('Deliver the facts of a session one at a time, in order.', true),
    concurrency: Type.Integer({
      description: 'Largest number of callbacks under way at once, over all sessions.',
      minimum: 1,
      maximum: 1024,
      default: 16,
    }),
    batch: section(
      {
        max: Type.Integer({
          description:
            'Largest number of facts in one request; above 1 the body is a JSON array. A module always gets one at a time.',
          minimum: 1,
          maximum: 500,
          default: 1,
        }),
        wait: duration('How long to wait for a batch to fill.', ['0', '5m'], { default: '0ms' }),
      },
      { description: 'Several facts in one request.', default: {} },
    ),
    timeout: duration('Time limit of one callback, connecting included.', ['1ms', '1h'], { default: '15s' }),
    retry: retry(
      16,
      '1s',
      '1h',
      'Repeated attempts after failures, with full jitter; an unreachable handler uses up no attempt.',
    ),
  },
  { description: 'An application that receives facts.', ...exactlyOneTarget },
)
