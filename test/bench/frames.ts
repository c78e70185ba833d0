/** Bytes of one frame on the wire, its blank line included. */
const FRAME_BYTES = 430

/** The sessions that all frames belong to: as many as an organization may have. */
export const SESSIONS: readonly string[] = Array.from(
  { length: 25 },
  (_, index) => `5e55109a-0000-4000-8000-${String(index + 1).padStart(12, '0')}`,
)

/** When the sessions of a store that has grown ended. */
export const OLD_AT = 1_763_701_200_000

/** From 1. */
export function oldSessionId(number: number): string {
  return `9e550000-0000-4000-8000-${String(number).padStart(12, '0')}`
}

/** Persisted events that are common within a turn, with what a payload of each may look like. */
const EVENTS: readonly { type: string; payload: (text: string) => unknown }[] = [
  { type: 'agent.tool_call', payload: (text) => ({ toolName: 'shell', args: { command: text } }) },
  { type: 'agent.tool_result', payload: (text) => ({ toolName: 'shell', output: text }) },
  { type: 'file.changed', payload: (text) => ({ path: 'src/index.ts', diff: text }) },
  { type: 'agent.message', payload: (text) => ({ text }) },
]

const CREATED_AT = 1_763_701_200_000

/** The frame with `seq` (rules EVT-08 to EVT-14), padded to its size. Neighbours are of different sessions. */
export function encodeFrame(seq: number): Buffer {
  const event = EVENTS[seq % EVENTS.length]
  if (event === undefined) throw new RangeError(`no event for seq ${seq}`)
  const write = (text: string): string => {
    const data = {
      type: event.type,
      internal_type: `session.${event.type.replace('.', '_')}`,
      seq,
      session_id: SESSIONS[seq % SESSIONS.length],
      turn_id: `turn_${Math.floor(seq / 1000)}`,
      created_at: CREATED_AT + seq,
      payload: event.payload(text),
    }
    return `event: ${event.type}\nid: ${seq}\ndata: ${JSON.stringify(data)}\n\n`
  }
  return Buffer.from(write('work '.repeat(100).slice(0, FRAME_BYTES - write('').length)))
}
