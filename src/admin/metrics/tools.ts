import type { Observer } from '../../core/observer.ts'
import { CALLBACK, WAIT } from './buckets.ts'
import { LabelValues } from './label.ts'
import type { Meter } from './meter.ts'

/** Outcomes of a call in which the service did not take our answer: there is no time at which it did. */
const NOT_ACCEPTED = new Set(['not_delivered', 'failed', 'refused', 'expired', 'cancelled', 'unknown'])

/** Function calls that we took on, and runs of the tools named `names`. */
export function toolMetrics(meter: Meter, names: readonly string[]): Pick<Observer, 'toolRun' | 'call'> {
  const tool = new LabelValues(names)
  const calls = meter.counter('tool_calls_total', 'Function calls closed, by what became of them.', {
    tool,
    outcome: new LabelValues([...NOT_ACCEPTED], 50),
  })
  const runs = meter.histogram(
    'tool_call_duration_seconds',
    'How long one run of a tool took.',
    'tool',
    tool,
    CALLBACK,
  )
  const answers = meter.histogram(
    'tool_answer_duration_seconds',
    'From the creation of the action to the moment the service took the answer.',
    'tool',
    tool,
    WAIT,
  )
  return {
    toolRun: (run) => runs.observe(run.tool, run.seconds),
    call({ tool: name, outcome, seconds }) {
      calls.add(name, outcome)
      if (seconds !== null && !NOT_ACCEPTED.has(outcome)) answers.observe(name, seconds)
    },
  }
}
