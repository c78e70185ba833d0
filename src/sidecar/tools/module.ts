import { thrownName } from '../../std/errors.ts'
import type { HandlerLog } from '../../core/handler.ts'
import { withPlainNumbers } from '../../std/json.ts'
import type { ModuleTool, ToolCall, ToolResult } from '../../core/tool.ts'
import type { Tracer } from '../../core/trace.ts'
import type { Runner } from './context.ts'
import { fits, TOO_LONG } from './output.ts'
import { runTraced } from './trace.ts'

/** A tool that runs in this process. What it throws is for our log, never for the model. */
export function createModuleRunner(run: ModuleTool, log: HandlerLog, tracer: Tracer): Runner {
  const runOnce = async (call: ToolCall, signal: AbortSignal): Promise<ToolResult> => {
    try {
      const result = await run({ ...call, arguments: withPlainNumbers(call.arguments) }, { signal, log })
      return result.kind === 'output' && !fits(result.output) ? TOO_LONG : result
    } catch (error) {
      return { kind: 'failed', error: thrownName(error) }
    }
  }

  return (call, signal) => runTraced(tracer, call, () => runOnce(call, signal))
}
