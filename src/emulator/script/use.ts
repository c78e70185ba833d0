import { findTool, isMcpTool } from '../mcp.ts'
import { isEnabled } from '../tool.ts'
import { publishCall, type Scene } from './scene.ts'
import type { Step } from '../step.ts'

/**
 * Uses a tool of an MCP server (`SERVER.TOOL`) or a networked tool of the sandbox. For a tool that
 * this session does not have, the agent gets an error, and the turn continues.
 */
export function use(scene: Scene, step: Extract<Step, { do: 'use' }>): void {
  const { tool: name, arguments: args } = step
  const result = isMcpTool(name) ? askServer(scene, name) : askNetwork(scene, name)
  publishCall(scene, { name, args, ...result, ...(result.failed ? {} : shown(step)) })
}

function shown({ output }: { output?: string }): { output?: string } {
  return output === undefined ? {} : { output }
}

function askServer({ world, session }: Scene, name: string): { output: string; failed: boolean } {
  const found = findTool(world, session, name)
  if (found === undefined) return { output: `There is no tool ${name} in this session.`, failed: true }
  return { output: found.output ?? `(${name} answered)`, failed: false }
}

function askNetwork({ world, session }: Scene, name: string): { output: string; failed: boolean } {
  const off = world.scenario.deployment?.tools_off ?? []
  if (!isEnabled(name, session.agent.tools, off)) {
    return { output: `${name} is not available in this session.`, failed: true }
  }
  return { output: `(${name} answered)`, failed: false }
}
