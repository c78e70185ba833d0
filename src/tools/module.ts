import { messageOf } from '../core/errors.ts'
import type { HandlerLog } from '../core/handler.ts'
import type { ModuleTool, ToolSpec } from '../core/tool.ts'
import { OUTPUT_MAX, type Runner } from './http.ts'

/** A tool that runs in this process. What it throws is for our log, never for the model. */
export function createModuleRunner(tool: ToolSpec, run: ModuleTool, log: HandlerLog): Runner {
  return async (call, signal) => {
    try {
      const result = await run(call, { signal, log })
      if (result.kind === 'output' && Buffer.byteLength(result.output) > OUTPUT_MAX) {
        return { kind: 'rejected', error: 'the output is over 1 MiB' }
      }
      return result
    } catch (error) {
      log.warn('the tool failed', { tool: tool.name, call: call.callId, error: messageOf(error) })
      return { kind: 'failed', error: messageOf(error) }
    }
  }
}
