import { readFileSync } from 'node:fs'
import { Type, type Static } from 'typebox'
import { parse } from 'yaml'
import { faultsOf } from './check.ts'
import { readDuration } from './duration.ts'
import { readLines, readVerb } from './script/line.ts'
import type { Step } from './script/step.ts'
import { toolsSchema } from './tool.ts'

const closed = { additionalProperties: false }

const reply = Type.Object(
  {
    when: Type.Union(
      [Type.String({ minLength: 1 }), Type.Object({ pattern: Type.String({ minLength: 1 }) }, closed)],
      {
        description:
          'A phrase that the message contains, whatever its case, or `{pattern}`, a regular expression.',
      },
    ),
    steps: Type.Array(Type.String(), { minItems: 1, description: 'Lines of the line language.' }),
  },
  closed,
)

const resolve = Type.Object(
  {
    type: Type.Enum(['approval', 'question']),
    after: Type.Optional(Type.String({ description: 'How long the person takes, for example `1s`.' })),
    approved: Type.Optional(Type.Boolean()),
    answer: Type.Optional(Type.String()),
  },
  { ...closed, description: 'What a person in the Console does once the session waits for them.' },
)

const plannedSession = Type.Object(
  {
    title: Type.String(),
    metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
    tools: Type.Optional(toolsSchema),
    messages: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }),
    resolve: Type.Optional(Type.Array(resolve)),
  },
  closed,
)

/** The shape of a scenario file. */
const scenarioSchema = Type.Object(
  {
    name: Type.String(),
    description: Type.Optional(Type.String()),
    replies: Type.Optional(
      Type.Array(reply, { description: 'The first that fits a message decides what the agent does.' }),
    ),
    sessions: Type.Optional(Type.Array(plannedSession, { description: 'What a tour creates and sends.' })),
  },
  closed,
)

export type Scenario = Static<typeof scenarioSchema>
export type PlannedSession = Static<typeof plannedSession>

/** The line language and nothing else. */
export const DEFAULT_SCENARIO: Scenario = { name: 'default' }

/**
 * Reads a scenario file (YAML or JSON).
 * @throws {Error} with every fault of the file, one to a line.
 */
export function loadScenario(file: string): Scenario {
  let content: unknown
  try {
    content = parse(readFileSync(file, 'utf8')) as unknown
  } catch (error) {
    throw new Error(`${file}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
  const faults = faultsOf(scenarioSchema, content)
  if (faults.length > 0) throw new Error(faults.map((fault) => `${file}: ${fault}`).join('\n'))
  const scenario = content as Scenario
  const deeper = [...faultsOfReplies(scenario), ...faultsOfResolves(scenario)]
  if (deeper.length > 0) throw new Error(deeper.map((fault) => `${file}: ${fault}`).join('\n'))
  return scenario
}

/** What the agent does on a message: the steps of the first reply that fits, else the message's own lines. */
export function stepsFor(scenario: Scenario, text: string): Step[] {
  const rule = (scenario.replies ?? []).find(({ when }) =>
    typeof when === 'string'
      ? text.toLowerCase().includes(when.toLowerCase())
      : new RegExp(when.pattern, 'u').test(text),
  )
  return readLines(rule === undefined ? text : rule.steps.join('\n'))
}

function faultsOfReplies(scenario: Scenario): string[] {
  return (scenario.replies ?? []).flatMap(({ when, steps }, index) => {
    const faults = steps
      .filter((line) => readVerb(line) === undefined)
      .map((line) => `replies.${index}: ${JSON.stringify(line)} is no step; write "say ${line}" to say it`)
    if (typeof when !== 'string' && !isPattern(when.pattern)) {
      faults.push(`replies.${index}: ${JSON.stringify(when.pattern)} is no regular expression`)
    }
    return faults
  })
}

function faultsOfResolves(scenario: Scenario): string[] {
  return (scenario.sessions ?? []).flatMap(({ title, resolve: entries = [] }) =>
    entries.flatMap((entry) => {
      const faults: string[] = []
      if (entry.after !== undefined && readDuration(entry.after) === undefined) {
        faults.push(`session ${JSON.stringify(title)}: after must be a duration such as 1s`)
      }
      if (entry.type === 'approval' ? entry.approved === undefined : entry.answer === undefined) {
        faults.push(
          `session ${JSON.stringify(title)}: an ${entry.type} needs ${entry.type === 'approval' ? 'approved' : 'answer'}`,
        )
      }
      return faults
    }),
  )
}

function isPattern(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u').source !== ''
  } catch {
    return false
  }
}
