import { frameName, type StoredFact } from '../../../core/fact.ts'
import type { TransientEvent } from '../../../core/observer.ts'

/** A frame of the relay, the same for every reader. */
export interface RelayFrame {
  /** Its position in our log; null: transient. */
  readonly place: { pos: number; seq: string } | null
  readonly sessionId: string | null
  readonly bytes: Buffer
}

/** A frame that is encoded once, when the first reader needs it. */
class LazyFrame implements RelayFrame {
  readonly place: RelayFrame['place']
  readonly sessionId: string | null
  readonly #type: string
  readonly #body: string
  #bytes: Buffer | null = null

  constructor(place: RelayFrame['place'], event: { type: string; sessionId: string | null; body: string }) {
    this.place = place
    this.sessionId = event.sessionId
    this.#type = event.type
    this.#body = event.body
  }

  get bytes(): Buffer {
    this.#bytes ??=
      this.place === null
        ? encode(this.#type, null, this.#body)
        : encode(frameName(this.#type), this.place.seq, this.#body)
    return this.#bytes
  }
}

/**
 * How long readers wait before they reconnect, milliseconds. They need not wait longer: a reader's slot is free as soon
 * as it disconnects.
 */
const RETRY = 2000
export const OPENING = Buffer.from(`retry: ${RETRY}\n\n`)
export const PING = Buffer.from(': ping\n\n')

/** The frame of a fact; null: the fact is not a frame of the stream. */
export function factFrame(fact: StoredFact): RelayFrame | null {
  const { pos, seq } = fact
  return seq === null ? null : new LazyFrame({ pos, seq }, fact)
}

export function transientFrame(event: TransientEvent): RelayFrame {
  return new LazyFrame(null, event)
}

/** The frame that ends a replay at its limit. The interface does not show its name. `seq`: the last one sent. */
export function stopFrame(seq: string): Buffer {
  const name = 'replay.stopped'
  const payload = `{"from_seq":${seq}}`
  const data = `{"type":"${name}","internal_type":"${name}","seq":null,"from_seq":${seq},"payload":${payload}}`
  return encode(name, null, data)
}

/**
 * `data` is sent as it was received; a line break in it begins another `data:` line. In a name, a line break would
 * begin a field.
 */
function encode(name: string, seq: string | null, data: string): Buffer {
  const id = seq === null ? '' : `id: ${seq}\n`
  const lines = data.includes('\n') ? data.replaceAll('\n', '\ndata: ') : data
  return Buffer.from(`event: ${name.replaceAll(/[\r\n]/g, ' ')}\n${id}data: ${lines}\n\n`)
}
