import { Type, type Static } from 'typebox'
import { invalid } from './refusal.ts'

const name = Type.String({ minLength: 1, maxLength: 64 })
const closed = { additionalProperties: false }

const functionTool = Type.Object(
  {
    type: Type.Literal('function'),
    name,
    description: Type.Optional(Type.String()),
    parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    timeout_seconds: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 7200, description: 'Left out: no deadline.' }),
    ),
  },
  closed,
)

const secrets = Type.Record(Type.String(), Type.String(), { description: 'Withheld on every read.' })

const mcpTool = Type.Object(
  {
    type: Type.Literal('mcp'),
    name,
    url: Type.Optional(Type.String({ minLength: 1 })),
    command: Type.Optional(Type.String({ minLength: 1 })),
    args: Type.Optional(Type.Array(Type.String())),
    headers: Type.Optional(secrets),
    env: Type.Optional(secrets),
    allowed_tools: Type.Optional(Type.Array(Type.String())),
    required: Type.Optional(Type.Boolean({ default: false })),
  },
  closed,
)

export const NETWORKED = [
  'web_search',
  'web_fetch',
  'image_search',
  'browse',
  'browser_act',
  'screenshot',
] as const

const networkedTool = Type.Object({ type: Type.Enum([...NETWORKED]), name: Type.Optional(name) }, closed)

/** An entry of a `tools` array as it is sent (rules TOO-01 to TOO-27). */
export type Tool = Static<typeof functionTool> | Static<typeof mcpTool> | Static<typeof networkedTool>

const toolSchema = Type.Unsafe<Tool>({
  type: 'object',
  required: ['type'],
  discriminator: { propertyName: 'type' },
  oneOf: [functionTool, mcpTool, networkedTool],
})

export const toolsSchema = Type.Array(toolSchema, { maxItems: 32 })

/** For a session that was created without `tools`: all networked tools of the sandbox. */
const DEFAULT_TOOLS: readonly Tool[] = NETWORKED.map((type) => ({ type }))

/** The tools of a session as they are read. */
export function viewTools(tools: readonly Tool[] | undefined): Record<string, unknown>[] {
  return (tools ?? DEFAULT_TOOLS).map(viewTool)
}

/** An entry as it is read: secrets are withheld and named in `redacted`. */
export const toolReadSchema = Type.Unsafe<unknown>({
  type: 'object',
  required: ['type'],
  properties: { type: { type: 'string' }, redacted: { type: 'array', items: { type: 'string' } } },
})

/**
 * @throws {Refusal} when an mcp entry does not have exactly one of `url` and `command`, or has a field that belongs
 * to the other one.
 */
export function checkTools(tools: readonly Tool[]): void {
  for (const [index, tool] of tools.entries()) {
    if (tool.type !== 'mcp') continue
    const place = `tools.${index} (${tool.name})`
    if ((tool.url === undefined) === (tool.command === undefined)) {
      throw invalid(`${place} needs exactly one of url and command`)
    }
    if (tool.url === undefined && tool.headers !== undefined) throw invalid(`${place}: headers go with url`)
    if (tool.command === undefined && tool.args !== undefined) throw invalid(`${place}: args go with command`)
    if (tool.command === undefined && tool.env !== undefined) throw invalid(`${place}: env goes with command`)
  }
}

/** The entry without its secrets. */
function viewTool(tool: Tool): Record<string, unknown> {
  if (tool.type !== 'mcp') return { ...tool }
  const { headers, env, ...shown } = tool
  const redacted = [...namesIn('headers', headers), ...namesIn('env', env)]
  return { required: false, ...shown, ...(redacted.length === 0 ? {} : { redacted }) }
}

function namesIn(field: string, values: Readonly<Record<string, string>> | undefined): string[] {
  return Object.keys(values ?? {}).map((key) => `${field}.${key}`)
}

export type McpTool = Static<typeof mcpTool>

/**
 * Whether the sandbox may use a networked tool. If the session names some, only those; with `[]` none. A tool that the
 * deployment has turned `off` stays off.
 */
export function isEnabled(type: string, tools: readonly Tool[] | undefined, off: readonly string[]): boolean {
  if (!isNetworked(type) || off.includes(type)) return false
  if (tools === undefined) return true
  const narrowed = tools.length === 0 || tools.some((tool) => isNetworked(tool.type))
  return !narrowed || tools.some((tool) => tool.type === type)
}

function isNetworked(type: string): boolean {
  return (NETWORKED as readonly string[]).includes(type)
}
