import { Type, type Static } from 'typebox'
import { readDuration } from '../duration.ts'
import { faultsSchema } from '../fault.ts'
import { readVerb } from './line.ts'
import type { Step } from '../step.ts'

const closed = { additionalProperties: false }
const optional = Type.Optional
const text = Type.String()
const word = Type.String({ minLength: 1 })
const anything = Type.Unknown({ description: 'Any JSON value; default an empty object.' })

/** Error messages contain the description after `must be`. */
export const duration = Type.String({
  pattern: '^[0-9]+(\\.[0-9]+)?(ms|s|m|h|d)$',
  description: 'a duration such as 250ms, 30s, 5m, 2h or 7d',
})

const callSchema = Type.Object({ name: word, arguments: optional(anything) }, closed)
const port = Type.Integer({ minimum: 1, maximum: 65_535 })

/** The actions of the agent, one per step. */
const acts = {
  say: optional(Type.String({ description: 'Streams the text and settles it.' })),
  think: optional(Type.String({ description: 'Transient thinking.' })),
  call: optional({ ...callSchema, description: 'Requests the result of a function from the client.' }),
  calls: optional(
    Type.Array(callSchema, { minItems: 1, description: 'Requests several results at once; waits for all.' }),
  ),
  shell: optional(
    Type.Union(
      [
        word,
        Type.Object({ command: word, output: optional(text), exit_code: optional(Type.Integer()) }, closed),
      ],
      {
        description: 'Pretends to run a command: the command, or {command, output, exit_code}.',
      },
    ),
  ),
  read: optional(Type.String({ minLength: 1, description: 'Reads a file of the workspace.' })),
  write: optional(
    Type.Object(
      { path: word, content: optional(text), bytes: optional(Type.Integer({ minimum: 0 })) },
      { ...closed, description: 'Writes a file: its content, or a number of zero bytes.' },
    ),
  ),
  serve: optional(
    Type.Object({ command: word, port }, { ...closed, description: 'Starts a service in the sandbox.' }),
  ),
  preview: optional({ ...port, description: 'Shows the service at this port.' }),
  commit: optional(Type.String({ minLength: 1, description: 'Commits with this message.' })),
  use: optional(
    Type.Object(
      { tool: word, arguments: optional(anything), output: optional(text) },
      { ...closed, description: 'Uses SERVER.TOOL of an MCP server, or a networked tool such as web_fetch.' },
    ),
  ),
  ask: optional(Type.String({ minLength: 1, description: 'Asks a person a question.' })),
  todos: optional(
    Type.Array(Type.Object({ text: word, done: optional(Type.Boolean()) }, closed), {
      description: "Shows the agent's list of remaining tasks.",
    }),
  ),
  compact: optional(Type.Integer({ minimum: 1, description: 'Summarizes a number of earlier messages.' })),
  wait: optional(duration),
  collect: optional(duration),
  fail: optional(
    Type.Union([text, Type.Object({ message: text, code: optional(word) }, closed)], {
      description: 'Ends the turn as failed: the reason, or {message, code}.',
    }),
  ),
  hang: optional(
    Type.Literal(true, { description: 'Works until it is steered or cancelled, or its workspace ends.' }),
  ),
  cannot_start: optional(
    Type.String({ minLength: 1, description: 'As the first step: the run does not start, for this reason.' }),
  ),
  burst: optional(
    Type.Object(
      {
        count: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
        characters: optional(Type.Integer({ minimum: 1, maximum: 65_536 })),
      },
      { ...closed, description: 'A number of messages, as fast as the streams accept them.' },
    ),
  ),
  faults: optional(faultsSchema),
}

const one = { ...closed, minProperties: 1, maxProperties: 1 }
const line = Type.String({ minLength: 1, format: 'line', description: 'A line of the line language.' })
const act = Type.Object(acts, one)

const structured = Type.Object(
  {
    ...acts,
    approve: optional(
      Type.Union([line, act], { description: 'Performs the step once a person approved it.' }),
    ),
  },
  one,
)

/** A step of a scenario file: a line, or an object with one key that names the action. */
export const stepSchema = Type.Union([line, structured], {
  description: 'A line, or one of the keys below.',
})

export type StepEntry = Static<typeof stepSchema>
type Act = Static<typeof act>

/** The step of an entry of a scenario file. */
export function readStep(entry: StepEntry): Step {
  if (typeof entry === 'string') return readVerb(entry) ?? { do: 'say', text: entry }
  const { approve, ...rest } = entry
  if (approve === undefined) return readAct(rest)
  const step = readStep(approve)
  return { do: 'approve', step, line: typeof approve === 'string' ? approve : summaryOf(approve) }
}

function readAct(act: Act): Step {
  if (act.say !== undefined) return { do: 'say', text: act.say }
  if (act.think !== undefined) return { do: 'think', text: act.think }
  if (act.call !== undefined) return { do: 'call', calls: [readCall(act.call)] }
  if (act.calls !== undefined) return { do: 'call', calls: act.calls.map(readCall) }
  if (act.shell !== undefined) return readShell(act.shell)
  if (act.read !== undefined) return { do: 'read', path: act.read }
  if (act.write !== undefined) {
    const { path, content = '', bytes } = act.write
    return bytes === undefined ? { do: 'write', path, content } : { do: 'write_size', path, bytes }
  }
  if (act.serve !== undefined) return { do: 'serve', ...act.serve }
  if (act.preview !== undefined) return { do: 'preview', port: act.preview }
  if (act.commit !== undefined) return { do: 'commit', message: act.commit }
  if (act.use !== undefined) return { do: 'use', ...act.use, arguments: act.use.arguments ?? {} }
  if (act.ask !== undefined) return { do: 'ask', question: act.ask }
  if (act.todos !== undefined) {
    return { do: 'todos', todos: act.todos.map(({ text, done = false }) => ({ text, done })) }
  }
  if (act.compact !== undefined) return { do: 'compact', messages: act.compact }
  if (act.wait !== undefined) return { do: 'wait', ms: readDuration(act.wait) ?? 0 }
  if (act.collect !== undefined) return { do: 'collect', ms: readDuration(act.collect) ?? 0 }
  if (act.fail !== undefined) return readFail(act.fail)
  if (act.cannot_start !== undefined) return { do: 'cannot_start', reason: act.cannot_start }
  if (act.burst !== undefined) {
    return { do: 'burst', count: act.burst.count, bytes: act.burst.characters ?? 100 }
  }
  if (act.faults !== undefined) return { do: 'faults', settings: act.faults }
  return { do: 'hang' }
}

function readCall({ name, arguments: given = {} }: Static<typeof callSchema>) {
  return { name, arguments: given }
}

function readShell(shell: NonNullable<Act['shell']>): Step {
  if (typeof shell === 'string') return { do: 'shell', command: shell }
  const { command, output, exit_code: exitCode } = shell
  return {
    do: 'shell',
    command,
    ...(output === undefined ? {} : { output }),
    ...(exitCode === undefined ? {} : { exitCode }),
  }
}

function readFail(fail: NonNullable<Act['fail']>): Step {
  if (typeof fail === 'string') return { do: 'fail', reason: fail }
  return { do: 'fail', reason: fail.message, ...(fail.code === undefined ? {} : { code: fail.code }) }
}

/** The text of an approval for a person: the key and its value. */
function summaryOf(act: Act): string {
  const [[key, value] = ['', '']] = Object.entries(act)
  return `${key} ${typeof value === 'string' ? value : JSON.stringify(value)}`
}
