import type { Random } from '../../src/std/ports.ts'
import { NetworkFault } from '../../src/std/errors.ts'
import type { Frame } from '../../src/protocol/frame.ts'
import { drainChunks } from '../source/draining.ts'
import { VirtualClock } from '../support/clock.ts'
import { FRAMES } from './frames.ts'
import { mutateText, pick } from './mutate.ts'
import { Tally } from './tally.ts'

/** Mutated frames cut in two at every byte: they mean the same as in one piece. `count`: how many pieces are tried. */
export async function attackSplits(count: number, random: Random): Promise<Tally> {
  const tally = new Tally()
  for (let done = 0; done < count;) {
    const bytes = Buffer.from(pick(random, FRAMES) + mutateText(pick(random, FRAMES), random))
    const whole = await framesOf([bytes])
    for (let cut = 1; cut < bytes.length && done < count; cut++, done++) {
      const split = await framesOf([bytes.subarray(0, cut), bytes.subarray(cut)])
      if (split !== whole) throw new Error(`cut at ${cut}: ${JSON.stringify(bytes.toString())}`)
      tally.note('the same')
    }
  }
  return tally
}

/** What the reader understands, as text. */
async function framesOf(chunks: readonly Uint8Array[]): Promise<string> {
  const found: (Frame | number | string)[] = []
  try {
    await drainChunks({
      chunks: (async function* () {
        yield* chunks
      })(),
      connection: new AbortController(),
      accept: (frame) => {
        found.push(frame)
        return null
      },
      commit: async () => undefined,
      onRetry: (ms) => void found.push(ms),
      clock: new VirtualClock(),
    })
  } catch (error) {
    if (!(error instanceof NetworkFault)) throw error
    found.push(error.message)
  }
  return JSON.stringify(found)
}
