import { frameName, type StoredFact } from '../../core/fact.ts'
import type { TransientEvent } from '../../core/observer.ts'

/** A frame as every reader gets it: encoded once. */
export interface RelayFrame {
  /** Its place in our log; null: transient. */
  place: { pos: number; seq: string } | null
  sessionId: string | null
  /** Made when the first reader wants it. */
  readonly bytes: Buffer
}

/** Tells readers how long to wait before they come back, milliseconds. Places here are free at once. */
const RETRY = 2000
export const OPENING = Buffer.from(`retry: ${RETRY}\n\n`)
export const PING = Buffer.from(': ping\n\n')

/** null for a fact that is no frame of the stream. */
export function factFrame({ pos, seq, type, sessionId, body }: StoredFact): RelayFrame | null {
  if (seq === null) return null
  return lazy({ pos, seq }, sessionId, () => encode(frameName(type), seq, body))
}

export function transientFrame({ type, sessionId, body }: TransientEvent): RelayFrame {
  return lazy(null, sessionId, () => encode(type, null, body))
}

function lazy(place: RelayFrame['place'], sessionId: string | null, make: () => Buffer): RelayFrame {
  let bytes: Buffer | undefined
  return {
    place,
    sessionId,
    get bytes() {
      return (bytes ??= make())
    },
  }
}

/** Says that a replay reached its limit; the service does not show what it calls that frame. `seq`: the last one sent. */
export function stopFrame(seq: string): Buffer {
  const name = 'replay.stopped'
  const payload = `{"from_seq":${seq}}`
  const data = `{"type":"${name}","internal_type":"${name}","seq":null,"from_seq":${seq},"payload":${payload}}`
  return encode(name, null, data)
}

/** `data` goes out as it came; a line break in it begins a new `data:` line, in a name it would begin a field. */
function encode(name: string, seq: string | null, data: string): Buffer {
  const id = seq === null ? '' : `id: ${seq}\n`
  const lines = data.includes('\n') ? data.replaceAll('\n', '\ndata: ') : data
  return Buffer.from(`event: ${name.replaceAll(/[\r\n]/g, ' ')}\n${id}data: ${lines}\n\n`)
}
