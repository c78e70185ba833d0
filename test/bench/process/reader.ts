import { createParser } from 'eventsource-parser'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { request } from 'undici'
import { now } from '../clock.ts'
import { serve } from './serve.ts'

/** Reads one event stream, as a client would: each persisted frame is parsed and counted. */

const Read = Type.Object({ service: Type.String(), token: Type.String(), frames: Type.Integer() })
const Frame = Type.Object({ seq: Type.Union([Type.Integer(), Type.Null()]) })

let reading: Promise<{ firstAt: number; lastAt: number }> | null = null

serve({
  read(argument) {
    reading = read(Value.Parse(Read, argument))
    // Waiters for the frames are informed.
    reading.catch(() => undefined)
  },
  /** When the first and the last of the frames had been read. */
  done: () => reading,
})

async function read({ service, token, frames }: Type.Static<typeof Read>) {
  const { body } = await request(`${service}/v1/events`, {
    headers: { accept: 'text/event-stream', authorization: `Bearer ${token}` },
    bodyTimeout: 0,
  })
  let count = 0
  let previous = 0
  let firstAt = 0
  const parser = createParser({
    onEvent({ data }) {
      const frame: unknown = JSON.parse(data)
      if (!Value.Check(Frame, frame) || frame.seq === null) return
      if (previous !== 0 && frame.seq !== previous + 1) throw new Error(`after ${previous} came ${frame.seq}`)
      previous = frame.seq
      if (count++ === 0) firstAt = now()
    },
  })
  const decoder = new TextDecoder()
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk as Buffer, { stream: true }))
    if (count >= frames) return { firstAt, lastAt: now() }
  }
  throw new Error(`the stream ended after ${count} of ${frames} frames`)
}
