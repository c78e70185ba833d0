import { hintOf } from '../mcp.ts'
import type { Attempt } from '../policy.ts'
import type { Scene } from './scene.ts'
import type { Step } from '../step.ts'
import { insidePath } from './work.ts'

/**
 * The action that the rules and the mode of the session must allow before `step`; null for a step
 * without a check.
 */
export function attemptOf(scene: Scene, step: Step): Attempt | null {
  switch (step.do) {
    case 'shell':
      return { tool: 'shell', command: step.command }
    case 'serve':
      return { tool: 'serve', command: step.command }
    case 'read':
      return { tool: 'read', path: insidePath(step.path) }
    case 'write':
    case 'write_size':
      return { tool: 'write', path: insidePath(step.path) }
    case 'preview':
    case 'commit':
      return { tool: step.do }
    case 'use': {
      const domain = domainOf(step.arguments)
      const readOnlyHint = hintOf(scene.world, scene.session, step.tool)
      return {
        tool: step.tool,
        ...(domain === undefined ? {} : { domain }),
        ...(readOnlyHint === undefined ? {} : { readOnlyHint }),
      }
    }
    case 'say':
    case 'think':
    case 'call':
    case 'approve':
    case 'ask':
    case 'todos':
    case 'compact':
    case 'wait':
    case 'hang':
    case 'fail':
    case 'cannot_start':
    case 'burst':
    case 'collect':
    case 'faults':
      return null
  }
}

/** The host of the address among a tool's arguments. */
function domainOf(given: unknown): string | undefined {
  if (typeof given !== 'object' || given === null || !('url' in given)) return undefined
  const { url } = given
  return typeof url === 'string' && URL.canParse(url) ? new URL(url).hostname : undefined
}
