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
      'A phrase that the message contains, whatever its case, or {pattern, instructions}: a regular expression and what the instructions must contain. Left out: every message.',
  },
)

const reply = Type.Object(
  {
    when: optional(when),
    steps: Type.Array(stepSchema, { minItems: 1 }),
    subagent: optional({ ...word, description: 'The subagent whose turn this is.' }),
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
  { ...closed, description: 'What a person in the Console does once the session waits for them.' },
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
    branch: optional({ ...word, description: 'Where a clone lands; main when left out.' }),
    files: optional(Type.Record(Type.String(), Type.String(), { description: 'Text by path.' })),
    clone_error: optional({ ...word, description: 'Why every clone of it fails.' }),
  },
  closed,
)

const deployment = Type.Object(
  {
    preview_domain: optional({
      ...word,
      description: 'Where previews are published; left out: they cannot be.',
    }),
    tools_off: optional(
      Type.Array(Type.Enum([...NETWORKED]), {
        description: 'Networked tools that are off whatever a session names.',
      }),
    ),
    repositories: optional(
      Type.Array(repository, { description: 'Left out: there is no repository-host connection.' }),
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
        { description: 'Sessions that are there from the start. `source: null`: older than the field.' },
      ),
    ),
  },
  { ...closed, description: 'How the service is set up.' },
)

const mcpServer = Type.Object(
  {
    name: Type.String({ minLength: 1, pattern: '^[^.]+$', description: 'a name without a dot' }),
    unreachable: optional({ ...word, description: 'Why it cannot be reached.' }),
    tools: optional(
      Type.Array(
        Type.Object(
          {
            name: word,
            read_only: optional(
              Type.Boolean({ description: 'The read-only hint; left out: the tool is not annotated.' }),
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
      Type.Array(reply, { description: 'The first that fits a message decides what the agent does.' }),
    ),
    sessions: optional(Type.Array(plannedSession, { description: 'What a tour creates and sends.' })),
    deployment: optional(deployment),
    mcp_servers: optional(
      Type.Array(mcpServer, { description: 'What the MCP servers that sessions name are like.' }),
    ),
  },
  { ...closed, title: 'Scenario of the emulator' },
)

export type Scenario = Static<typeof scenarioSchema>
export type PlannedSession = Static<typeof plannedSession>
