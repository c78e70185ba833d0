import type { Call } from '../../core/call.ts'
import { stageOf, transition } from '../../core/call-machine.ts'
import type { SessionSummary } from '../../core/resource.ts'
import { backoff } from '../../std/backoff.ts'
import { thrownName } from '../../std/errors.ts'
import type { ToolCall, ToolResult, ToolSpec } from '../../core/tool.ts'
import { namesOf, type Progress, type Tool, type ToolPorts } from './context.ts'
import { SUPERSEDED, write } from './ledger.ts'

/** An answer must reach the service before the deadline: a run is aborted up to this much earlier, milliseconds. */
const MARGIN = 1000
/**
 * A margin of 1 s would use up a deadline of 1 s, the shortest that the service accepts (`timeout_seconds: 1`). So the
 * margin is at most this part of the time.
 */
const SHARE = 0.1

/**
 * Milliseconds left for a call, on the service's clock. Infinite without a deadline, and until the service has sent its
 * time: our own clock may be wrong by hours.
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

/** Stores a call as running, runs its tool once and stores the result. */
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
    // An earlier run, which a crash interrupted, may have called an app. If the late answer of the app is in the same
    // commit as this step, the tool does not run.
    if ((await ports.store.calls.get(call.callId))?.state !== 'running') return SUPERSEDED
    const session = (await ports.sessions.summary(call.sessionId)) ?? {
      title: null,
      metadata: {},
      status: 'working',
    }
    if (over.aborted) return await withdraw(ports, running)
    return await runBegun(ports, tool, { call: running, session }, over)
  }
  return await giveUp(ports, tool.spec, call, 'the deadline has passed')
}

/** Runs the tool of a call that is stored as running, if this process still owns the session. */
export async function runBegun(
  ports: ToolPorts,
  tool: Tool,
  { call: running, session }: { call: Call; session: SessionSummary },
  over: AbortSignal,
): Promise<Progress> {
  const { clock, observer } = ports
  const { spec } = tool
  // The reply to the commit may come so late that another process has the call now.
  if (!ports.store.shards.owns(running.sessionId)) return await withdraw(ports, running)
  const left = timeLeft(ports, running)
  if (left <= 0) return await giveUp(ports, spec, running, 'the deadline has passed')
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
  // The sidecar stops, or the service no longer requires the call: the caller decides about it.
  if (over.aborted) return SUPERSEDED
  observer.toolRun({
    tool: running.name,
    callId: running.callId,
    sessionId: running.sessionId,
    outcome: result.kind,
    seconds: (clock.steady() - started) / 1000,
    attempt: running.attempts,
    status: ('status' in result ? result.status : null) ?? null,
    error: 'error' in result ? result.error : null,
  })
  // The tool has run: its result is held until it is stored.
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
      // The app answers later; the deadline remains.
      const wait = Math.min(Math.max(0, timeLeft(ports, call)), FAR)
      return await write(ports, call, { type: 'run_deferred' }, { wait })
    }
    case 'rejected':
      log.warn(
        { ...namesOf(ports, call), error: result.error },
        'tools: the tool rejected the call; the fixed error is posted',
      )
      return await giveUp(ports, spec, call, result.error)
    case 'failed':
      return await tryLater(ports, spec, call, result)
  }
}

/** The longest wait for the app, or for an unreachable tool, before the call is checked again, milliseconds. */
export const FAR = 300_000

async function tryLater(
  ports: ToolPorts,
  spec: ToolSpec,
  call: Call,
  result: Extract<ToolResult, { kind: 'failed' }>,
): Promise<Progress> {
  const { random, log } = ports
  // A tool that may not run twice is tried again only if it certainly did not run.
  const mayRunAgain = spec.afterCrash === 'retry' || result.ran === 'no'
  const wait = backoff(spec.retry, call.attempts, random, result.retryAfter ?? 0)
  const left = timeLeft(ports, call)
  const details = { ...namesOf(ports, call), attempt: call.attempts, error: result.error }
  if (!mayRunAgain || call.attempts >= spec.retry.attempts || wait >= left) {
    log.warn(details, 'tools: the last run failed; the fixed error is posted')
    return await giveUp(ports, spec, call, result.error)
  }
  log.warn({ ...details, wait }, 'tools: a run failed, and is repeated')
  const uncertain = result.ran === 'unknown'
  return await write(ports, call, { type: 'run_failed', error: result.error, uncertain }, { wait })
}

/** Answers with the fixed error text of the tool. `error` is only for people. */
export async function giveUp(ports: ToolPorts, spec: ToolSpec, call: Call, error: string): Promise<Progress> {
  const result = { kind: 'error', text: spec.error } as const
  return await write(ports, call, { type: 'result_fixed', result, error, at: ports.clock.now() })
}

/** Withdraws a run that was stored and never began: it does not count as uncertain. */
export async function withdraw(ports: ToolPorts, call: Call): Promise<Progress> {
  await write(ports, call, { type: 'run_withdrawn' })
  return SUPERSEDED
}

/** If a tool ignores its signal, its run is abandoned and counts as failed. */
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
