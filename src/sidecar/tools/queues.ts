import PQueue from 'p-queue'
import type { CallRoom } from '../../core/call.ts'
import type { Tool } from './context.ts'

/** Calls in memory for each run that a tool may have under way; its others wait in the store, and hold up no other tool. */
const CALLS_PER_RUN = 2
/** Calls in memory that wait for no run: their results are posted. */
const POSTS = 256

/** The runs of each tool, so many at once as it may have. */
export interface Queues {
  of(name: string): PQueue | undefined
  /** Where a run would begin at once. */
  free(name: string): PQueue | null
  /** For calls from the ledger. `active`: how many are in memory; `most`: of each kind. */
  room(active: number, most: number): CallRoom
}

export function createQueues(tools: ReadonlyMap<string, Tool>): Queues {
  const queues = new Map(
    [...tools.values()].map(({ spec }) => [spec.name, new PQueue({ concurrency: spec.concurrency })]),
  )
  const taken = ({ size, pending }: PQueue): number => size + pending

  return {
    of: (name) => queues.get(name),
    free(name) {
      const queue = queues.get(name)
      return queue === undefined || taken(queue) >= queue.concurrency ? null : queue
    },
    room(active, most) {
      const inTurn = [...queues.values()].reduce((sum, queue) => sum + taken(queue), 0)
      const others = Math.min(most, POSTS - (active - inTurn))
      return {
        others,
        of(name) {
          const queue = queues.get(name)
          // Nobody runs it any more: there is nothing to wait for.
          return queue === undefined
            ? others
            : Math.min(most, queue.concurrency * CALLS_PER_RUN - taken(queue))
        },
      }
    },
  }
}
