import type { StoredFact } from '../../../core/fact.ts'
import { isObject, stringOf } from '../../../std/json.ts'
import type { SessionSummary } from '../../../core/resource.ts'
import type { Attributes, TraceSource } from '../../../core/trace.ts'
import type { Outgoing } from './target.ts'

/** The trace of what is delivered. A state fact carries its session; of another's we know what was read. */
export function traceOf(fact: StoredFact, session: SessionSummary | null): TraceSource {
  return {
    given: session?.metadata['traceparent'] ?? carried(fact),
    key: fact.sessionId ?? fact.id,
  }
}

/** Bodies are parsed only where there is something to find. */
function carried({ family, body }: StoredFact): string | undefined {
  if (family !== 'state' || !body.includes('"traceparent"')) return undefined
  const data: unknown = JSON.parse(body)
  const session = isObject(data) ? data['session'] : null
  const metadata = isObject(session) ? session['metadata'] : null
  return (isObject(metadata) ? stringOf(metadata['traceparent']) : null) ?? undefined
}

/** What a callback's span says of it. */
export function attributesOf(handler: string, { fact, attempt }: Outgoing): Attributes {
  return {
    'session_sidecar.handler': handler,
    'session_sidecar.event.id': fact.id,
    'session_sidecar.event.type': fact.type,
    'session_sidecar.attempt': attempt,
    ...(fact.sessionId === null ? {} : { 'session_sidecar.session.id': fact.sessionId }),
  }
}
