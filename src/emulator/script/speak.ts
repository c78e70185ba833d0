import { publish, publishTransient } from '../publish.ts'
import type { Scene } from './scene.ts'

/** Characters of one streamed piece of text. */
const DELTA_CHARACTERS = 24
/** At most this many pieces, so that a long text does not become a thousand frames. */
const MOST_DELTAS = 8
/** Messages of a burst between two checks of the readers. */
const BURST_CHUNK = 64

/** Streams a text in pieces, then settles it. */
export function say({ world, session, turn }: Scene, text: string): void {
  const size = Math.max(DELTA_CHARACTERS, Math.ceil(text.length / MOST_DELTAS))
  for (let at = 0; at < text.length; at += size) {
    publishTransient(world, session, turn.id, 'agent.text', { stated: { delta: text.slice(at, at + size) } })
  }
  publish(world, session, turn.id, 'agent.message', { stated: { text } })
}

export function think({ world, session, turn }: Scene, text: string): void {
  publishTransient(world, session, turn.id, 'agent.thinking', { stated: { delta: text } })
}

/** Many messages for load tests, at the pace of the streams that read them. */
export async function burst(scene: Scene, count: number, bytes: number): Promise<void> {
  const { world, session, run, turn } = scene
  const text = 'x'.repeat(bytes)
  for (let sent = 0; sent < count; sent++) {
    publish(world, session, turn.id, 'agent.message', { stated: { text } })
    if (sent % BURST_CHUNK !== BURST_CHUNK - 1) continue
    await world.streams.room()
    run.controller.signal.throwIfAborted()
  }
}
