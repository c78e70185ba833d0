import { createThrottledLog } from '../std/throttled-log.ts'
import type { CallWithoutTool, Observer } from '../core/observer.ts'
import type { Clock, Log } from '../std/ports.ts'

/** Characters of a name in a log line: the service allows 64, and the agent's side chooses them. */
const NAME = 64

/**
 * Logs function calls that no configured tool answers, for example of `lookup_ordr`, at most once in ten seconds. A sidecar
 * without any tool leaves all calls to another process on purpose: then it is information, else a warning.
 */
export function logCallsWithoutTool(
  clock: Pick<Clock, 'steady'>,
  log: Log,
  hasTools: boolean,
): Pick<Observer, 'callWithoutTool'> {
  const level = hasTools ? 'warn' : 'info'
  const report = createThrottledLog<CallWithoutTool>(clock, (times, { name, callId, sessionId }) =>
    log[level](
      { function: name.slice(0, NAME), callId, sessionId, times },
      'tools: no configured tool answers a function call; add it under tools, unless another process answers it',
    ),
  )
  return { callWithoutTool: (call) => report(call) }
}
