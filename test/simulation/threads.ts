import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** Has `file`, beside this one, do jobs on so many cores: each thread takes one after the other until there is none. */
export async function onThreads<Job>(options: {
  file: string
  threads: number
  /** null: there is none any more. */
  take: () => Job | null
  /** What a thread posted for `job`; the file says what that is. */
  onAnswer: (answer: unknown, job: Job) => void
}): Promise<void> {
  const { file, threads, take, onAnswer } = options
  const work = async (): Promise<void> => {
    const worker = new Worker(new URL(file, import.meta.url))
    try {
      for (let job = take(); job !== null; job = take()) {
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows; this is a thread
        worker.postMessage(job)
        const [answer] = (await once(worker, 'message')) as [unknown]
        onAnswer(answer, job)
      }
    } finally {
      await worker.terminate()
    }
  }
  await Promise.all(Array.from({ length: threads }, work))
}
