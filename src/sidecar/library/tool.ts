import { messageOf } from '../../std/errors.ts'
import type { HandlerLog } from '../../core/handler.ts'
import type { JsonObject } from '../../std/json.ts'
import { TOOL_NAME, type ModuleTool, type ToolResult } from '../../core/tool.ts'
import { checkSettings, type ToolSettings } from './settings.ts'
import { compileInput, type InputOf, type ToolInput } from './schema.ts'

/** What a tool's `run` gets beside its arguments. */
export interface ToolContext {
  callId: string
  sessionId: string
  turnId: string | null
  /** From 1. */
  attempt: number
  /** An earlier run of this call gave no answer, or a crash interrupted it: that run may have had its effect. */
  uncertain: boolean
  session: { title: string | null; metadata: Record<string, string> }
  /** Aborted at the tool's timeout, at the call's deadline, and when the sidecar stops. */
  signal: AbortSignal
  log: HandlerLog
}

export interface ToolOptions<I extends ToolInput> extends ToolSettings {
  name: string
  description: string
  input: I
  /**
   * A returned string is the output unchanged; any other value is sent as JSON. A thrown error never reaches the model.
   */
  run: (input: InputOf<I>, context: ToolContext) => unknown
  /**
   * If the arguments do not match `input`, the model gets the paths and the schema's messages instead of the fixed
   * error.
   */
  explain?: boolean
}

/** A function tool as the sidecar runs it; made by `tool`. */
export interface ToolDefinition {
  readonly kind: 'tool'
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
  readonly run: ModuleTool
  readonly settings: ToolSettings
}

/**
 * Defines a function tool (src/sidecar/README.md, As a library). The argument type of `run` is inferred from `input`.
 * @throws {TypeError} when the schema or a setting cannot be used.
 */
export function tool<const I extends ToolInput>(options: ToolOptions<I>): ToolDefinition {
  const { name, description, input, run, explain = false, ...settings } = options
  if (!TOOL_NAME.test(name)) throw new TypeError(`tool ${JSON.stringify(name)}: 1 to 64 of A-Z a-z 0-9 _ -`)
  checkSettings(name, settings)
  const compiled = compileInput(input)
  return {
    kind: 'tool',
    name,
    description,
    parameters: compiled.parameters,
    settings,
    async run(call, { signal, log }): Promise<ToolResult> {
      const checked = await compiled.check(call.arguments ?? {})
      if ('issues' in checked) {
        if (explain)
          return { kind: 'output', output: `The arguments do not fit:\n${checked.issues.join('\n')}` }
        return { kind: 'rejected', error: `the arguments do not fit: ${checked.issues.join('; ')}` }
      }
      const { callId, sessionId, turnId, attempt, uncertain, session } = call
      const context = { callId, sessionId, turnId, attempt, uncertain, session, signal, log }
      const value: unknown = await run(checked.value as InputOf<I>, context)
      return answerOf(value)
    },
  }
}

const NO_OUTPUT = '(no output)'

/**
 * If the value cannot be written as JSON, the call is rejected and not retried: another run would return the same
 * value.
 */
function answerOf(value: unknown): ToolResult {
  let text: string | undefined
  try {
    text = typeof value === 'string' ? value : (JSON.stringify(value) as string | undefined)
  } catch (error) {
    return { kind: 'rejected', error: `its return value cannot be written as JSON: ${messageOf(error)}` }
  }
  return { kind: 'output', output: text === undefined || text === '' ? NO_OUTPUT : text }
}
