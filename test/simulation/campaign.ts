import type { Chunk } from './chunk.ts'
import type { Journal } from './journal.ts'
import { merge, type Tally } from './tally.ts'
import { onThreads } from './threads.ts'

export interface Campaign {
  /** What was played is added to it, in the order of the seeds. */
  journal: Journal
  /** The first seed that is not played. */
  end: number
  /** Each plays on a core of its own. */
  threads: number
  /** Processes on one store, in place of what a seed draws. */
  replicas?: number | null
  /** Ends it early; what was begun is played to its end. */
  stop?: AbortSignal
  /** Called whenever the journal has grown. */
  onProgress?: () => void
}

/** Seeds that a thread takes at a time. */
const CHUNK = 20

/** Plays many seeds on several cores. Which of them plays a seed makes no difference to it. */
export async function campaign({
  journal,
  end,
  threads,
  replicas = null,
  stop,
  onProgress,
}: Campaign): Promise<void> {
  const { mode, tally } = journal
  /** Chunks that came before those in front of them. */
  const early = new Map<number, [Chunk, Tally]>()
  let from = journal.next
  const take = (): Chunk | null => {
    if (stop?.aborted === true || from >= end) return null
    const chunk = { from, to: Math.min(from + CHUNK, end), mode, replicas }
    from = chunk.to
    return chunk
  }
  await onThreads<Chunk>({
    file: 'chunk.ts',
    threads: Math.min(threads, Math.ceil((end - from) / CHUNK)),
    take,
    onAnswer(answer, done) {
      early.set(done.from, [done, answer as Tally])
      for (let entry = early.get(journal.next); entry !== undefined; entry = early.get(journal.next)) {
        const [chunk, played] = entry
        early.delete(chunk.from)
        merge(tally, played)
        journal.next = chunk.to
      }
      onProgress?.()
    },
  })
}
