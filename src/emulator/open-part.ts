/**
 * Parts that clients look up in the description because the interface does not specify them. The
 * description of a deployment may lack any of these.
 */
export const OPEN_PARTS = [
  'message',
  'answer',
  'turn',
  'session-stream',
  'artifacts',
  'idempotency-header',
  'rate-headers',
] as const

export type OpenPart = (typeof OPEN_PARTS)[number]

/** Operations that are parts of their own, by `id`. */
export const PART_OF_OPERATION: Readonly<Partial<Record<string, OpenPart>>> = {
  sendInput: 'message',
  answerCall: 'answer',
  getTurn: 'turn',
  streamSessionEvents: 'session-stream',
  listArtifacts: 'artifacts',
}
