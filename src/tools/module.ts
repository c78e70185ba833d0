import { thrownName } from '../core/errors.ts'
import type { HandlerLog } from '../core/handler.ts'
import type { ModuleTool } from '../core/tool.ts'
import type { Runner } from './http.ts'
import { fits, TOO_LONG } from './output.ts'

/** A tool that runs in this process. What it throws is for our log, never for the model. */
export function createModuleRunner(run: ModuleTool, log: HandlerLog): Runner {
  return async (call, signal) => {
    try {
      const result = await run(call, { signal, log })
      return result.kind === 'output' && !fits(result.output) ? TOO_LONG : result
    } catch (error) {
      return { kind: 'failed', error: thrownName(error) }
    }
  }
}
