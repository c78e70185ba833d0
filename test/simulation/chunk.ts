import { parentPort } from 'node:worker_threads'
import { run, type Mode } from './run.ts'
import { count, newTally, note, type Tally } from './tally.ts'

/** Seeds that follow one another. */
export interface Chunk {
  from: number
  /** The first one that is not played. */
  to: number
  mode: Mode
  replicas?: number | null
}

/** So often a seed is played twice: the hash of all that happened must be the same. */
const TWICE = 50

/** Plays the seeds of a chunk, whatever comes of them. */
export async function play({ from, to, mode, replicas = null }: Chunk): Promise<Tally> {
  const tally = newTally()
  for (let seed = from; seed < to; seed++) {
    const options = { seed, mode, ...(replicas === null ? {} : { replicas }) }
    const outcome = await run(options)
    count(tally, outcome)
    if (seed % TWICE !== 0 || (await run(options)).hash === outcome.hash) continue
    const message = 'it does not repeat: something came in by another door than a port'
    note(tally, { seed, mode, invariant: 'repeat', message, after: 'nothing', faults: '', times: 1 })
  }
  return tally
}

// As a worker: one chunk after the other, as they are handed in.
parentPort?.on('message', (chunk: Chunk) => void answer(chunk))

async function answer(chunk: Chunk): Promise<void> {
  const tally = await play(chunk)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows; this is a thread
  parentPort?.postMessage(tally)
}
