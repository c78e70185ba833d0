import type { Passed } from '../../support/gateway.ts'
import type { Posting } from '../../checker/history.ts'
import type { World } from '../world.ts'

/** Every answer that reached the service whole, taken or not, in order. */
export function postings({ gateway, service: { details } }: Pick<World, 'gateway' | 'service'>): Posting[] {
  const end = details.paths.answer.replace(/^.*\}/, '')
  return gateway.passed
    .filter(({ method, path }) => method === 'POST' && path.endsWith(end))
    .flatMap((passed) => postingOf(passed, details.idempotency.header.toLowerCase()) ?? [])
}

function postingOf({ body, headers, status }: Passed, keyHeader: string): Posting | null {
  let given: { call_id?: unknown; output?: unknown; error?: unknown }
  try {
    given = JSON.parse(body) as typeof given
  } catch {
    // It was cut on its way.
    return null
  }
  const kind = given.output === undefined ? 'error' : 'output'
  return {
    call_id: String(given.call_id),
    kind,
    text: String(given[kind]),
    key: String(headers[keyHeader] ?? ''),
    status,
    times: null,
  }
}
