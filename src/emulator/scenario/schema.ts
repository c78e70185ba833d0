import { Type, type Static } from 'typebox'
import { NETWORKED, toolsSchema } from '../tool.ts'
import { duration, stepSchema } from './step.ts'

const closed = { additionalProperties: false }
const optional = Type.Optional
const text = Type.String()
const word = Type.String({ minLength: 1 })

const when = Type.Union(
  [
    word,
    Type.Object(
      {
        pattern: optional(Type.String({ minLength: 1, format: 'regex' })),
        instructions: optional({ ...word, description: 'A phrase that the instructions in force contain.' }),
      },
      { ...closed, minProperties: 1 },
    ),
  ],
  {
    description:
      'A phrase that the message contains, in any case, or {pattern, instructions}: a regular expression and a phrase of the instructions. Omitted: every message.',
  },
)

const reply = Type.Object(
  {
    when: optional(when),
    steps: Type.Array(stepSchema, { minItems: 1 }),
    subagent: optional({ ...word, description: 'The subagent that takes the turn.' }),
  },
  closed,
)

const resolve = Type.Object(
  {
    type: Type.Enum(['approval', 'question']),
    after: optional(duration),
    approved: optional(Type.Boolean()),
    answer: optional(text),
  },
  { ...closed, description: 'The action of a person in the Console once the session waits for it.' },
)

const labels = { title: text, metadata: optional(Type.Record(Type.String(), Type.String())) }

const plannedSession = Type.Object(
  {
    ...labels,
    tools: optional(toolsSchema),
    messages: Type.Array(word, { minItems: 1 }),
    resolve: optional(Type.Array(resolve)),
  },
  closed,
)

const repository = Type.Object(
  {
    full_name: Type.String({ pattern: '^[^/]+/[^/]+$', description: 'OWNER/NAME' }),
    branch: optional({ ...word, description: 'The branch of a clone; default main.' }),
    files: optional(Type.Record(Type.String(), Type.String(), { description: 'Text by path.' })),
    clone_error: optional({ ...word, description: 'The reason why every clone of it fails.' }),
  },
  closed,
)

const deployment = Type.Object(
  {
    preview_domain: optional({
      ...word,
      description: 'The domain of published previews; omitted: previews cannot be published.',
    }),
    tools_off: optional(
      Type.Array(Type.Enum([...NETWORKED]), {
        description: 'Networked tools that are turned off for every session.',
      }),
    ),
    repositories: optional(
      Type.Array(repository, { description: 'Omitted: there is no repository-host connection.' }),
    ),
    sessions: optional(
      Type.Array(
        Type.Object(
          {
            ...labels,
            source: optional(Type.Unsafe<'console' | 'cli' | null>({ enum: ['console', 'cli', null] })),
          },
          closed,
        ),
        { description: 'Sessions that exist from the start. `source: null`: older than the field.' },
      ),
    ),
  },
  { ...closed, description: 'The setup of the service.' },
)

const mcpServer = Type.Object(
  {
    name: Type.String({ minLength: 1, pattern: '^[^.]+$', description: 'a name without a dot' }),
    unreachable: optional({ ...word, description: 'The reason why it is unreachable.' }),
    tools: optional(
      Type.Array(
        Type.Object(
          {
            name: word,
            read_only: optional(
              Type.Boolean({ description: 'The read-only hint; omitted: the tool is not annotated.' }),
            ),
            output: optional(text),
          },
          closed,
        ),
      ),
    ),
  },
  closed,
)

/** The shape of a scenario file. */
export const scenarioSchema = Type.Object(
  {
    name: text,
    description: optional(text),
    replies: optional(
      Type.Array(reply, { description: 'The first that matches a message has the steps of the agent.' }),
    ),
    sessions: optional(Type.Array(plannedSession, { description: 'The sessions and messages of a tour.' })),
    deployment: optional(deployment),
    mcp_servers: optional(Type.Array(mcpServer, { description: 'The MCP servers that sessions name.' })),
  },
  { ...closed, title: 'Scenario of the emulator' },
)

export type Scenario = Static<typeof scenarioSchema>
export type PlannedSession = Static<typeof plannedSession>
