import { newCall, type Call } from '../../src/core/call.ts'
import { transition } from '../../src/core/call-machine.ts'

/** A call as it is stored while its tool runs. */
export function runningCall(callId: string): Call {
  const call = newCall({
    callId,
    sessionId: 'ses_1',
    turnId: null,
    name: 'lookup',
    action: {},
    createdAt: null,
    expiresAt: null,
    receivedAt: 1,
  })
  return transition(call, { type: 'run_begun', at: 1 }) ?? call
}
