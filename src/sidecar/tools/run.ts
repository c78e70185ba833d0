import type { Call } from '../../core/call.ts'
import { backoff } from '../../std/backoff.ts'
import { thrownName } from '../../std/errors.ts'
import type { ToolCall, ToolResult, ToolSpec } from '../../core/tool.ts'
import type { Tool, ToolPorts } from './context.ts'
import { timeLeft } from './deadline.ts'
import { beginRun, deferRun, finish, retryRun, unbeginRun } from './ledger.ts'
import { namesOf } from './trace.ts'

/**
 * Writes that a call's tool runs, runs it once and writes what came of it. @returns when there is more to do, steady
 * milliseconds; null when the call moved on by other means.
 */
export async function runTool(
  ports: ToolPorts,
  tool: Tool,
  call: Call,
  again: boolean,
  over: AbortSignal,
): Promise<number | null> {
  if (timeLeft(ports, call) > 0) {
    const begun = beginRun(call, ports.clock.now(), again)
    if (!(await ports.step(begun))) return null
    return await runBegun(ports, tool, { ...call, ...begun.set }, over)
  }
  return await giveUp(ports, tool.spec, call, 'the deadline is over')
}

/** The rest of it, for a call that is written as running. */
export async function runBegun(
  ports: ToolPorts,
  tool: Tool,
  running: Call,
  over: AbortSignal,
): Promise<number | null> {
  const { store, clock, observer } = ports
  const { spec } = tool
  // One commit may have written the run down and then the late answer of an app that was asked before a crash.
  if ((await store.calls.get(running.callId))?.state !== 'running') return null
  const session = (await ports.summaryOf(running.sessionId)) ?? {
    title: null,
    metadata: {},
    status: 'working',
  }
  if (over.aborted) {
    // What never began leaves nobody in doubt.
    await ports.step(unbeginRun(running, clock.steady()))
    return null
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
  // Stopping, or nobody waits any more: what becomes of the call is decided elsewhere.
  if (over.aborted) return null
  observer.toolRun({
    tool: spec.name,
    callId: running.callId,
    outcome: result.kind,
    seconds: (clock.steady() - started) / 1000,
    attempt: running.attempts,
  })
  // The tool has done its work: what it said is held until it is written.
  return await conclude({ ...ports, step: (step) => ports.keep(step, over) }, spec, running, result)
}

async function conclude(
  ports: ToolPorts,
  spec: ToolSpec,
  call: Call,
  result: ToolResult,
): Promise<number | null> {
  const { clock, log } = ports
  const now = clock.now()
  const steady = clock.steady()
  switch (result.kind) {
    case 'output': {
      const done = await ports.step(finish(call, { kind: 'output', text: result.output }, now, null, steady))
      return done ? steady : null
    }
    case 'deferred': {
      // The app answers later; the deadline still holds.
      const left = timeLeft(ports, call)
      const dueAt = steady + Math.min(left, FAR)
      return (await ports.step(deferRun(call, dueAt))) ? dueAt : null
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
): Promise<number | null> {
  const { clock, random, log } = ports
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
  const dueAt = clock.steady() + wait
  const uncertain = result.ran === 'unknown'
  return (await ports.step(retryRun(call, { error: result.error, uncertain }, dueAt))) ? dueAt : null
}

/** The model gets the fixed error, whatever went wrong. */
export async function giveUp(
  ports: ToolPorts,
  spec: ToolSpec,
  call: Call,
  error: string,
): Promise<number | null> {
  const { clock } = ports
  const steady = clock.steady()
  const done = await ports.step(finish(call, { kind: 'error', text: spec.error }, clock.now(), error, steady))
  return done ? steady : null
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
