import type { Event } from './event.ts'
import type { OpenDetails } from './profile/details.ts'

/** An event as one frame of a stream; only a persisted one has an `id:` line (rules EVT-14, EVT-15). */
export function encodeFrame(details: OpenDetails, event: Event): Buffer {
  const id = event.seq === null ? '' : `id: ${event.seq}\n`
  return Buffer.from(`event: ${event.type}\n${id}data: ${JSON.stringify(details.frame(event))}\n\n`)
}
