import { parentPort } from 'node:worker_threads'
import { brokenText, exhaustOne, type Exhausted } from './exhaustive.ts'
import { FIXED } from './fixed.ts'

/** One story for a thread: the fixed scenario of that name. */
export interface Story {
  name: string
  pairs: number
}

/** As `Exhausted`; what broke is in words. */
export type Answered = Omit<Exhausted, 'broken'> & { broken: string | null }

// As a worker: one story after the other, as they are handed in.
parentPort?.on('message', (story: Story) => void answer(story))

async function answer({ name, pairs }: Story): Promise<void> {
  const scenario = FIXED[name]
  if (scenario === undefined) throw new Error(`there is no scenario ${name}`)
  const { broken, ...sizes } = await exhaustOne(scenario, pairs)
  const answer: Answered = { ...sizes, broken: broken === null ? null : brokenText(name, broken) }
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows; this is a thread
  parentPort?.postMessage(answer)
}
