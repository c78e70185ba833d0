import { pause } from '../../std/pause.ts'
import { createCircuitBreaker, type Rest } from '../../std/circuit-breaker.ts'
import type { ToolPorts } from './context.ts'

/** What the rest of the house gives. */
export type GivenPorts = Omit<ToolPorts, 'keep'>

/** Ports whose steps, once stored, end the rest that a refused one began. */
export interface BreakingPorts {
  ports: ToolPorts
  rest: Rest
  /** Puts a call off by `wait` milliseconds. False: the store refused even that, and is left alone for a while. */
  postpone(callId: string, wait: number): Promise<boolean>
}

export function breakingPorts(given: GivenPorts): BreakingPorts {
  const { clock } = given
  const rest = createCircuitBreaker(
    given,
    'tools: the store refuses writes; no call is taken on until it takes them',
  )
  const step: ToolPorts['step'] = async (one) => {
    const done = await given.step(one)
    rest.end()
    return done
  }
  const keep: ToolPorts['keep'] = async (one, over) => {
    for (;;) {
      try {
        return await step(one)
      } catch (error) {
        rest.refused(error)
        if (over.aborted) throw error
        await pause(clock, rest.until - clock.steady(), over)
      }
    }
  }
  return {
    ports: { ...given, step, keep },
    rest,
    async postpone(callId, wait) {
      const dueAt = Math.ceil(clock.steady() + wait)
      try {
        await step({ callId, from: ['received', 'running', 'finished'], set: { dueAt } })
        return true
      } catch (error) {
        rest.refused(error)
        return false
      }
    },
  }
}
