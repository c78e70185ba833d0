import type { Call } from '../../core/call.ts'
import { stageOf, transition } from '../../core/call-machine.ts'
import { backoff } from '../../std/backoff.ts'
import { thrownName } from '../../std/errors.ts'
import type { ToolCall, ToolResult, ToolSpec } from '../../core/tool.ts'
import { namesOf, type Progress, type Tool, type ToolPorts } from './context.ts'
import { SUPERSEDED, write } from './ledger.ts'

/** An answer must reach the service before the deadline: a run is stopped this much earlier, at most. Milliseconds. */
const MARGIN = 1000
/** A margin of 1 s would use up a deadline of 1 s, the shortest that the service takes (`timeout_seconds: 1`). */
const SHARE = 0.1

/**
 * Milliseconds left for a call, by the service's clock; infinite when it has no deadline, and until the service has said
 * what time it is: no call is given up by a clock of ours that may be wrong by hours.
 */
export function timeLeft(
  { service, clock }: Pick<ToolPorts, 'service' | 'clock'>,
  { createdAt, expiresAt, receivedAt }: Pick<Call, 'createdAt' | 'expiresAt' | 'receivedAt'>,
): number {
  if (expiresAt === null || service.clockOpen() === Infinity) return Infinity
  const offset = service.clockOffset()
  const span = expiresAt - (createdAt ?? receivedAt + offset)
  return expiresAt - Math.min(MARGIN, Math.max(0, span) * SHARE) - (clock.now() + offset)
}

/** Writes that a call's tool runs, runs it once and writes its result. */
export async function runTool(
  ports: ToolPorts,
  tool: Tool,
  call: Call,
  over: AbortSignal,
): Promise<Progress> {
  if (timeLeft(ports, call) > 0) {
    const type = stageOf(call) === 'running' ? 'run_begun_again' : 'run_begun'
    const event = { type, at: ports.clock.now() } as const
    const running = transition(call, event)
    if (running === null || !(await ports.step({ callId: call.callId, event }))) return SUPERSEDED
    return await runBegun(ports, tool, running, over)
  }
  return await giveUp(ports, tool.spec, call, 'the deadline is over')
}

/** The rest of it, for a call that is written as running. */
export async function runBegun(
  ports: ToolPorts,
  tool: Tool,
  running: Call,
  over: AbortSignal,
): Promise<Progress> {
  const { store, clock, observer } = ports
  const { spec } = tool
  // One commit may have written the run down and then the late answer of an app that was asked before a crash.
  if ((await store.calls.get(running.callId))?.state !== 'running') return SUPERSEDED
  const session = (await ports.summaryOf(running.sessionId)) ?? {
    title: null,
    metadata: {},
    status: 'working',
  }
  if (over.aborted) {
    return await withdraw(ports, running)
  }
  const left = timeLeft(ports, running)
  if (left <= 0) return await giveUp(ports, spec, running, 'the deadline is over')
  const limit = Math.min(spec.timeout, left)
  const stop = new AbortController()
  const { signal } = stop
  const end = (): void => stop.abort()
  const timer = clock.after(limit, end)
  over.addEventListener('abort', end, { once: true })
  const started = clock.steady()
  let result: ToolResult
  try {
    result = await raceAbort(tool.run(toolCall(running, session), signal), signal, limit)
  } finally {
    timer.cancel()
    over.removeEventListener('abort', end)
  }
  // Stopping, or the service waits no longer: what becomes of the call is decided elsewhere.
  if (over.aborted) return SUPERSEDED
  observer.toolRun({
    tool: spec.name,
    callId: running.callId,
    outcome: result.kind,
    seconds: (clock.steady() - started) / 1000,
    attempt: running.attempts,
  })
  // The tool has done its work: its result is held until it is written.
  return await conclude({ ...ports, step: (step) => ports.keep(step, over) }, spec, running, result)
}

async function conclude(ports: ToolPorts, spec: ToolSpec, call: Call, result: ToolResult): Promise<Progress> {
  const { clock, log } = ports
  switch (result.kind) {
    case 'output': {
      const fixed = { kind: 'output', text: result.output } as const
      return await write(ports, call, { type: 'result_fixed', result: fixed, error: null, at: clock.now() })
    }
    case 'deferred': {
      // The app answers later; the deadline still holds.
      const wait = Math.min(Math.max(0, timeLeft(ports, call)), FAR)
      return await write(ports, call, { type: 'run_deferred' }, { wait })
    }
    case 'rejected':
      log.warn({ ...namesOf(ports, call), error: result.error }, 'tools: rejected; the fixed error is posted')
      return await giveUp(ports, spec, call, result.error)
    case 'failed':
      return await tryLater(ports, spec, call, result)
  }
}

/** A call that waits for the app, or for its tool to come back, is looked at again so much later, milliseconds. */
export const FAR = 300_000

async function tryLater(
  ports: ToolPorts,
  spec: ToolSpec,
  call: Call,
  result: Extract<ToolResult, { kind: 'failed' }>,
): Promise<Progress> {
  const { random, log } = ports
  // A tool that may not run twice is not tried again, unless it certainly did not run.
  const mayRunAgain = spec.afterCrash === 'retry' || result.ran === 'no'
  const wait = backoff(spec.retry, call.attempts, random, result.retryAfter ?? 0)
  const left = timeLeft(ports, call)
  const details = { ...namesOf(ports, call), attempt: call.attempts, error: result.error }
  if (!mayRunAgain || call.attempts >= spec.retry.attempts || wait >= left) {
    log.warn(details, 'tools: failed for good; the fixed error is posted')
    return await giveUp(ports, spec, call, result.error)
  }
  log.warn({ ...details, wait }, 'tools: failed, will try again')
  const uncertain = result.ran === 'unknown'
  return await write(ports, call, { type: 'run_failed', error: result.error, uncertain }, { wait })
}

/** The model gets the fixed error, whatever went wrong. */
export async function giveUp(ports: ToolPorts, spec: ToolSpec, call: Call, error: string): Promise<Progress> {
  const result = { kind: 'error', text: spec.error } as const
  return await write(ports, call, { type: 'result_fixed', result, error, at: ports.clock.now() })
}

/** The run was written down and never began: what never began leaves nobody in doubt. */
export async function withdraw(ports: ToolPorts, call: Call): Promise<Progress> {
  await write(ports, call, { type: 'run_withdrawn' })
  return SUPERSEDED
}

/** A tool that does not listen to its signal is left behind. */
function raceAbort(run: Promise<ToolResult>, signal: AbortSignal, ms: number): Promise<ToolResult> {
  return new Promise((resolve) => {
    const error = `no answer within ${Math.round(ms)} ms`
    const late = (): void => resolve({ kind: 'failed', error, ran: 'unknown' })
    if (signal.aborted) late()
    signal.addEventListener('abort', late, { once: true })
    const end = (result: ToolResult): void => {
      signal.removeEventListener('abort', late)
      resolve(result)
    }
    run.then(end, (error: unknown) => end({ kind: 'failed', error: thrownName(error) }))
  })
}

function toolCall(call: Call, session: ToolCall['session']): ToolCall {
  return {
    callId: call.callId,
    name: call.name,
    arguments: call.action.arguments,
    sessionId: call.sessionId,
    turnId: call.turnId,
    createdAt: call.createdAt,
    expiresAt: call.expiresAt,
    attempt: call.attempts,
    uncertain: call.uncertain,
    session,
  }
}
