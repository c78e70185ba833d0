import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Chunk } from './chunk.ts'
import type { Mode } from './run.ts'
import { merge, newTally, type Tally } from './tally.ts'

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
  const work = async (): Promise<void> => {
    const worker = new Worker(new URL('chunk.ts', import.meta.url))
    try {
      for (let chunk = take(); chunk !== null; chunk = take()) {
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows; this is a thread
        worker.postMessage(chunk)
        const [done] = (await once(worker, 'message')) as [Tally]
        merge(tally, done)
        onProgress?.(tally)
      }
    } finally {
      await worker.terminate()
    }
  }
  await Promise.all(Array.from({ length: Math.min(threads, Math.ceil(count / CHUNK)) }, work))
  return tally
}
