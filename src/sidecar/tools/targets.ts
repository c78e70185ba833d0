import { NetworkFault, messageOf, thrownName } from '../../std/errors.ts'
import type { HandlerLog } from '../../core/handler.ts'
import { headerSafe } from '../../std/header.ts'
import { withPlainNumbers, writeJson } from '../../std/json.ts'
import type { Clock, Http } from '../../std/ports.ts'
import { retryAfter } from '../../std/retry-after.ts'
import type { Secrets } from '../../std/signature.ts'
import { Signer } from '../../std/signature.ts'
import {
  attributesOf,
  traceOf,
  type ModuleTool,
  type ToolCall,
  type ToolResult,
  type ToolSpec,
} from '../../core/tool.ts'
import type { Tracer } from '../../core/trace.ts'
import type { Runner } from './context.ts'

/** How a tool is reached: over HTTP, or in this process. */

/** The most that is read of an output, bytes: no answer can carry more. */
const OUTPUT_READ = 1024 * 1024
/** The service accepts bodies of 1 MiB (rule LIM-01); everything around the output fits in 4 KiB. */
const ENCODED_MAX = 1024 * 1024 - 4096
/** The most bytes that one character takes in JSON. */
const JSON_WORST = 6

const TOO_LONG: ToolResult = {
  kind: 'rejected',
  error: 'the output has more than 1 MiB, as text or as JSON',
}

/** Whether an answer with this output stays below the service's body limit. */
export function fits(output: string): boolean {
  if (output.length * JSON_WORST <= ENCODED_MAX) return true
  return output.length <= ENCODED_MAX && Buffer.byteLength(JSON.stringify(output)) <= ENCODED_MAX
}

const NO_OUTPUT = '(no output)'
/** A gateway in front of the tool forwarded the call and got no usable response: the tool may have run. */
const GATEWAY: ReadonlySet<number> = new Set([502, 504])

/** A tool over HTTP (src/sidecar/README.md, Function tools). */
export function createHttpRunner(
  tool: ToolSpec,
  target: { url: string; secrets: Secrets },
  ports: { http: Http; clock: Clock; tracer: Tracer },
): Runner {
  const { http, clock, tracer } = ports
  const signer = new Signer(target.secrets)
  // A tool that may not run twice gets a new connection for each run: on a reused one, a reset would not show whether
  // the run began.
  const pool = { size: tool.concurrency, fresh: tool.afterCrash === 'fail' }

  return async (call, signal) => {
    const body = writeJson({
      type: 'tool.call',
      call_id: call.callId,
      name: call.name,
      arguments: call.arguments ?? null,
      session_id: call.sessionId,
      turn_id: call.turnId,
      created_at: call.createdAt,
      expires_at: call.expiresAt,
      attempt: call.attempt,
      uncertain: call.uncertain,
      session: { title: call.session.title, metadata: call.session.metadata },
    })
    const id = headerSafe(call.callId)
    const headers = {
      ...signer.sign(id, clock.now(), body).headers,
      'content-type': 'application/json',
      'idempotency-key': id,
    }
    return await runTraced(tracer, call, (traceparent) =>
      post(call.name, { ...headers, traceparent: traceparent() }, body, signal),
    )
  }

  async function post(
    name: string,
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    try {
      const reply = await http.exchange({
        method: 'POST',
        url: target.url.replaceAll('{name}', name),
        headers,
        body,
        timeout: tool.timeout,
        maxBody: OUTPUT_READ,
        pool,
        signal,
      })
      return resultOf(reply, clock.now())
    } catch (error) {
      // If a connection or a certificate is refused, nothing was sent.
      const ran = error instanceof NetworkFault && error.kind === 'unreachable' ? 'no' : 'unknown'
      return { kind: 'failed', error: messageOf(error), ran }
    }
  }
}

function resultOf(
  reply: { status: number; headers: Record<string, string>; body: string; truncated: boolean },
  now: number,
): ToolResult {
  const { status, body } = reply
  if (status === 200 || status === 204) {
    if (reply.truncated || !fits(body)) return TOO_LONG
    return { kind: 'output', output: body === '' ? NO_OUTPUT : body }
  }
  if (status === 202) return { kind: 'deferred', status }
  const fix = status === 401 ? ': give it the secret of the configuration' : ''
  const error = `the tool answered ${status}${fix}`
  if (status === 400 || status === 422) return { kind: 'rejected', error, status }
  return {
    kind: 'failed',
    error,
    status,
    ...(GATEWAY.has(status) ? { ran: 'unknown' } : {}),
    retryAfter: retryAfter(reply.headers['retry-after'], now) ?? 0,
  }
}

/** A tool in this process. Its exceptions go to our log, never to the model. */
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

/** Runs a tool inside its span. `run` gets the `traceparent` to send. */
async function runTraced(
  tracer: Tracer,
  call: ToolCall,
  run: (traceparent: () => string) => Promise<ToolResult>,
): Promise<ToolResult> {
  const attributes = { ...attributesOf(call), 'session_sidecar.attempt': call.attempt }
  const span = tracer.start('tool', traceOf(call), () => attributes)
  const result = await span.run(() => run(() => span.traceparent))
  span.end('error' in result ? result.error : null)
  return result
}
