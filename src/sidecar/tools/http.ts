import { NetworkFault, messageOf } from '../../std/errors.ts'
import { headerSafe } from '../../std/header.ts'
import { writeJson } from '../../std/json.ts'
import type { Clock, Http } from '../../std/ports.ts'
import { Signer } from '../../std/signature.ts'
import type { ToolResult, ToolSpec } from '../../core/tool.ts'
import type { Tracer } from '../../core/trace.ts'
import type { Runner } from './context.ts'
import { fits, OUTPUT_READ, TOO_LONG } from './output.ts'
import { runTraced } from './trace.ts'
import { retryAfter } from '../../std/retry-after.ts'

const NO_OUTPUT = '(no output)'
/** What stands before the tool passed the call on and got no answer that it could use. */
const GATEWAY: ReadonlySet<number> = new Set([502, 504])

/** A tool over HTTP (README, Function tools). */
export function createHttpRunner(
  tool: ToolSpec,
  target: { url: string; secrets: readonly string[] },
  ports: { http: Http; clock: Clock; tracer: Tracer },
): Runner {
  const { http, clock, tracer } = ports
  const signer = new Signer(target.secrets)
  // A run of which nobody can tell whether it began is not tried again where a tool may not run twice.
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
      post({ ...headers, traceparent: traceparent() }, body, signal),
    )
  }

  async function post(
    headers: Record<string, string>,
    body: string,
    signal: AbortSignal,
  ): Promise<ToolResult> {
    try {
      const reply = await http.exchange({
        method: 'POST',
        url: target.url,
        headers,
        body,
        timeout: tool.timeout,
        maxBody: OUTPUT_READ,
        pool,
        signal,
      })
      return resultOf(reply, clock.now())
    } catch (error) {
      // A certificate that is refused, like a refused connection, means that nothing was sent.
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
  if (status === 202) return { kind: 'deferred' }
  if (status === 400 || status === 422) return { kind: 'rejected', error: `the tool answered ${status}` }
  return {
    kind: 'failed',
    error: `the tool answered ${status}`,
    ...(GATEWAY.has(status) ? { ran: 'unknown' } : {}),
    retryAfter: retryAfter(reply.headers['retry-after'], now) ?? 0,
  }
}
