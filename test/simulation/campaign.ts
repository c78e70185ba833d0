import type { Chunk } from './chunk.ts'
import type { Mode } from './run.ts'
import { merge, newTally, type Tally } from './tally.ts'
import { onThreads } from './threads.ts'

export interface Campaign {
  /** Seeds from `first` on, `count` of them. */
  first: number
  count: number
  mode: Mode
  /** Each plays on a core of its own. */
  threads: number
  /** Ends it early; what was begun is played to its end. */
  stop?: AbortSignal
  /** Told now and then what was done so far. */
  onProgress?: (tally: Tally) => void
}

/** Seeds that a thread takes at a time. */
const CHUNK = 20

/** Plays many seeds on several cores. Which of them plays a seed makes no difference to it. */
export async function campaign(options: Campaign): Promise<Tally> {
  const { first, count, mode, threads, stop, onProgress } = options
  const tally = newTally()
  let next = first
  const take = (): Chunk | null => {
    const from = next
    if (stop?.aborted === true || from >= first + count) return null
    next = Math.min(from + CHUNK, first + count)
    return { from, to: next, mode }
  }
  await onThreads<Chunk>({
    file: 'chunk.ts',
    threads: Math.min(threads, Math.ceil(count / CHUNK)),
    take,
    onAnswer(done) {
      merge(tally, done as Tally)
      onProgress?.(tally)
    },
  })
  return tally
}
