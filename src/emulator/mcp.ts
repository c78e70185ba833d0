import type { Session } from './session.ts'
import type { McpTool } from './tool.ts'
import type { World } from './world.ts'

/** A tool as its server lists it. */
export interface ListedTool {
  name: string
  /** The read-only hint; absent: the tool has no annotation. */
  read_only?: boolean
  output?: string
}

/** `SERVER.TOOL` names a tool of an MCP server; a name without a dot is one of the sandbox's own. */
export function isMcpTool(name: string): boolean {
  return name.includes('.')
}

/** The tool as its server lists it, if the session has that server, may use the tool, and the server is reachable. */
export function findTool(world: World, session: Session, name: string): ListedTool | undefined {
  const [server, tool] = split(name)
  const entry = serversOf(session).find((candidate) => candidate.name === server)
  if (entry === undefined || whyUnreachable(world, session, entry) !== undefined) return undefined
  if (entry.allowed_tools?.includes(tool) === false) return undefined
  const declared = world.scenario.mcp_servers?.find((candidate) => candidate.name === server)
  // A server that the scenario does not declare has every requested tool, without annotations.
  return declared === undefined
    ? { name: tool }
    : declared.tools?.find((candidate) => candidate.name === tool)
}

/**
 * The read-only hint of an MCP tool: false without an annotation; undefined if the session has no
 * such tool.
 */
export function hintOf(world: World, session: Session, name: string): boolean | undefined {
  const found = isMcpTool(name) ? findTool(world, session, name) : undefined
  return found === undefined ? undefined : (found.read_only ?? false)
}

/**
 * Servers of the session that cannot be reached, with the reason: those that the session requires, or (`required`
 * false) the others.
 */
export function unreachableServers(
  world: World,
  session: Session,
  required: boolean,
): { name: string; reason: string }[] {
  return serversOf(session)
    .filter((server) => (server.required ?? false) === required)
    .map((server) => ({ name: server.name, reason: whyUnreachable(world, session, server) }))
    .filter((server): server is { name: string; reason: string } => server.reason !== undefined)
}

/** The sentence that names a required MCP server which cannot be reached. */
export function unreachableRequired(world: World, session: Session): string | undefined {
  const [first] = unreachableServers(world, session, true)
  return first === undefined
    ? undefined
    : `the required MCP server ${JSON.stringify(first.name)} cannot be reached: ${first.reason}`
}

/**
 * The reason why a server is unreachable from the sandbox; undefined if it is reachable. The
 * emulator sends no request and starts no process. A server is unreachable when the scenario or a
 * fault declares it, when its host is under `.invalid` (RFC 2606), or when its command names a file
 * that is not in the workspace.
 */
function whyUnreachable(world: World, session: Session, tool: McpTool): string | undefined {
  if (world.faults.unreachableMcp.includes(tool.name)) return 'connection refused'
  const declared = world.scenario.mcp_servers?.find((candidate) => candidate.name === tool.name)
  if (declared?.unreachable !== undefined) return declared.unreachable
  if (tool.url === undefined) return missingProgram(session, tool)
  if (!URL.canParse(tool.url)) return `not an address: ${tool.url}`
  const { hostname } = new URL(tool.url)
  return hostname.endsWith('.invalid') ? `getaddrinfo ENOTFOUND ${hostname}` : undefined
}

/** Only `./…` and `/workspace/…` are certainly files of the workspace. */
function missingProgram(session: Session, { command = '', args = [] }: McpTool): string | undefined {
  const missing = [command, ...args]
    .filter((word) => /^(\.\/|\/workspace\/)/.test(word))
    .find((word) => !session.workspace.files.has(word.replace(/^(\.\/|\/workspace\/)/, '')))
  return missing === undefined ? undefined : `${missing}: no such file in the workspace`
}

function serversOf(session: Session): McpTool[] {
  return (session.agent.tools ?? []).filter((tool): tool is McpTool => tool.type === 'mcp')
}

function split(name: string): [string, string] {
  const dot = name.indexOf('.')
  return [name.slice(0, dot), name.slice(dot + 1)]
}
