import type { Random } from '../../src/std/ports.ts'
import { NetworkFault } from '../../src/std/errors.ts'
import type { Frame } from '../../src/protocol/frame.ts'
import { callbackText, dataText } from '../../src/sidecar/deliver/targets/body.ts'
import { readFrame } from '../../src/sidecar/intake/frame.ts'
import type { Pending } from '../../src/sidecar/source/batch.ts'
import { drainChunks } from '../source/draining.ts'
import { VirtualClock } from '../support/clock.ts'
import { Tally } from './tally.ts'
import { mutateText, pick, whole } from './mutate.ts'

export const FRAMES = [
  'id: 41\nevent: agent.message\ndata: {"type":"agent.message","internal_type":"m","seq":41,"session_id":"s","payload":{"text":"né \\"} {"}}\n\n',
  'event: agent.text\ndata: {"type":"agent.text","seq":null,"session_id":"s","payload":{"delta":"x"}}\n\n',
  'id: 9007199254740993\nevent: turn.ended\ndata: {"type":"turn.ended","seq":9007199254740993,"payload":{"turn_id":"t","sessionId":"s"}}\n\n',
  'event: replay.stopped\ndata: {"type":"replay.stopped","from_seq":7}\n\n',
  ': ping\n\nretry: 8000\n\n',
  'id: 42\nevent: tool.required\ndata: {"type":"tool.required",\ndata: "seq":42,"payload":{"call_id":"c","name":"f","arguments":{"n":1e400}}}\n\n',
]

/** Mutated frames, cut anywhere: each is a fact, transient, a stop or quarantined, and every fact makes a callback. */
export async function attackFrames(count: number, random: Random): Promise<Tally> {
  const tally = new Tally()
  // What follows a stop is not read, and a frame may have lost its end: only what was read counts.
  for (let read = 0; read < count;) {
    const text = Array.from({ length: 1 + whole(random, 6) }, () =>
      mutateText(pick(random, FRAMES), random),
    ).join('')
    await play(Buffer.from(text), random, (kind) => {
      read++
      tally.note(kind)
    })
  }
  return tally
}

async function play(bytes: Buffer, random: Random, saw: (kind: string) => void): Promise<void> {
  const accept = (frame: Frame): Pending | null | 'stop' => {
    const meaning = readFrame(frame, 1)
    saw(meaning.kind)
    if (meaning.kind === 'stop') return 'stop'
    if (meaning.kind !== 'transient' && meaning.seq !== null) checkHeader(meaning.seq)
    if (meaning.kind === 'transient') return null
    if (meaning.kind === 'fact') check(meaning.fact)
    return { meaning, raw: frame.data, at: 1 }
  }
  try {
    await drainChunks({
      chunks: chunksOf(bytes, random),
      connection: new AbortController(),
      accept,
      commit: async () => undefined,
      onPing: () => saw('ping'),
      clock: new VirtualClock(),
    })
  } catch (error) {
    if (!(error instanceof NetworkFault)) throw error
  }
}

/** @throws when a handler would get something that it cannot read, or something else than was sent. */
function check(fact: Extract<Pending['meaning'], { kind: 'fact' }>['fact']): void {
  const text = callbackText(fact, dataText({ ...fact, pos: 1 }, null), { attempt: 1, handler: 'app' })
  const event = JSON.parse(text) as { id: string; data: { payload: unknown } }
  const sent = JSON.parse(fact.body) as { payload?: unknown }
  // A frame without a payload has an empty one in a callback.
  if (JSON.stringify(event.data.payload) !== JSON.stringify(sent.payload ?? {}))
    throw new Error(`the payload of ${fact.body} became ${text}`)
  if (!/^[A-Za-z0-9_-]+$/.test(event.id)) throw new Error(`${event.id} is no id`)
}

/** @throws {TypeError} when a value cannot stand in a header. */
function checkHeader(value: string): void {
  const headers = new Headers()
  headers.set('x', value)
}

async function* chunksOf(bytes: Buffer, random: Random): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length;) {
    const to = at + 1 + whole(random, 40)
    yield bytes.subarray(at, to)
    at = to
  }
}
