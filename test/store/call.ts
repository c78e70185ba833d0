import { newCall, type Call } from '../../src/core/call.ts'

/** A call of the function `lookup` that no tool has run yet. */
export function lookupCall(callId = 'call_1', sessionId = 'ses_1'): Call {
  return newCall({
    callId,
    sessionId,
    turnId: null,
    name: 'lookup',
    action: {},
    createdAt: null,
    expiresAt: null,
    receivedAt: 1,
  })
}
