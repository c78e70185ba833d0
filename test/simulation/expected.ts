import type { HttpReply } from '../../src/std/ports.ts'
import type { CallEvent } from '../../src/core/call-machine.ts'
import type { Store } from '../../src/core/store.ts'
import type { CallbackEvent } from '../../src/core/handler.ts'
import type { Counts } from './counts.ts'
import { STRANGER } from './scenario.ts'

/** The store as one life sees it; what its commits brought is noted, for it must be counted. */
export function noteCommits(store: Store, { expected }: Counts): Store {
  const { log } = store
  return {
    ...store,
    log: {
      ...log,
      async commit(batch, patience) {
        const committed = await log.commit(batch, patience)
        expected.facts += committed.facts.length
        for (const { type, body } of committed.facts) {
          const { action } = JSON.parse(body) as { action?: { name?: string; call_id: string } }
          if (type === 'action.required' && action?.name === STRANGER) expected.strange.add(action.call_id)
        }
        for (const { callId, event } of batch.calls ?? [])
          if (endsCall(event) && !committed.refused.includes(callId)) expected.closed.add(callId)
        return committed
      },
    },
  }
}

/** The call has ended with it. */
export function endsCall({ type }: CallEvent): boolean {
  return type === 'answered' || type === 'not_delivered' || type === 'failed'
}

/** A handler that answers so has taken what it was sent. */
export function saysTaken({ status, body }: Pick<HttpReply, 'status' | 'body'>): boolean {
  return status < 300 && !body.includes('"verdict":"')
}

/** A handler's answer to stored events has come. @returns whether it took them, as far as we must know. */
export function noteAnswer(
  { expected }: Counts,
  handler: string,
  events: readonly CallbackEvent[],
  { status, body }: HttpReply,
  stopping: boolean,
): boolean {
  const answers = expected.answers.get(handler) ?? { delivered: 0, failed: 0, late: 0 }
  expected.answers.set(handler, answers)
  const taken = saysTaken({ status, body })
  if (stopping) answers.late += events.length
  else if (taken) answers.delivered += events.length
  // One that pauses its handler is counted when that is stored.
  else if (status !== 410) answers.failed += events.length
  return taken && !stopping
}
